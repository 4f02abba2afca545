// Go: timers and goroutines that sleep. GOMAXPROCS is the number of workers. What the sleepers are is said in
// bench/timers/late.h; the kinds of cases and the clocks are those of bench/tasks/tasks.h. A timer that is
// made and cancelled is time.NewTimer and Stop; no goroutine waits for it, which saves Go a cost that the others have.
package main

import (
	"runtime"
	"sort"
	"sync"
	"time"
)

const batch = 1000

var due, by []int64

func timerCancel(ops int) float64 {
	began := now()
	for i := 0; i < ops; i++ {
		t := time.NewTimer(time.Second + time.Duration(i%64)*time.Millisecond)
		t.Stop()
	}
	return float64(now() - began)
}

var start = time.Now()

func sleepAll(count int) float64 {
	due, by = make([]int64, count), make([]int64, count)
	var wg sync.WaitGroup
	wg.Add(count)
	began := now()
	var base int64
	seed := uint64(12345)
	for i := 0; i < count; i++ {
		if i%batch == 0 {
			base = int64(time.Since(start)) + 500000000
		}
		seed = seed*6364136223846793005 + 1442695040888963407
		due[i] = base + int64(seed>>33)%1000000000
		go func(i int) {
			time.Sleep(time.Duration(due[i] - int64(time.Since(start))))
			by[i] = int64(time.Since(start)) - due[i]
			wg.Done()
		}(i)
		if i%batch == batch-1 {
			runtime.Gosched()
		}
	}
	ns := float64(now() - began)
	wg.Wait()
	return ns
}

func sleepsLate(count int) float64 {
	sleepAll(count)
	sort.Slice(by, func(a, b int) bool { return by[a] < by[b] })
	return float64(by[count-1-count/100]) / 1e6
}

var cases = map[string]benchCase{
	"timer-cancel":     {paced, timerCancel, 0},
	"sleeps-100k-late": {once, sleepsLate, 100000},
	"sleeps-1m-create": {fixed, sleepAll, 1000000},
	"sleeps-1m-late":   {once, sleepsLate, 1000000},
}
