// Go: what its standard library has: sync.Mutex, sync.RWMutex, channels. GOMAXPROCS is the number of
// workers. The kinds of cases and the clocks are those of bench/tasks/tasks.h. The cases are in the
// other files of this folder.
package main

import "sync"

var cases = map[string]benchCase{}

// work(ops) by one goroutine.
func alone(work func(ops int)) benchCase {
	return benchCase{paced, func(ops int) float64 {
		began := now()
		work(ops)
		return float64(now() - began)
	}, 0}
}

// The same by several, each with its share.
func together(count int, work func(ops int)) benchCase {
	return benchCase{paced, func(ops int) float64 {
		each := ops / count
		var wg sync.WaitGroup
		wg.Add(count)
		began := now()
		for i := 0; i < count; i++ {
			go func() {
				work(each)
				wg.Done()
			}()
		}
		wg.Wait()
		return float64(now()-began) / float64(each*count) * float64(ops)
	}, 0}
}
