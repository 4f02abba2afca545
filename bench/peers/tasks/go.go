// Go: goroutines and channels, as its own documentation has them. GOMAXPROCS is the number of workers.
// The kinds of cases and the clocks are those of bench/tasks/tasks.h. A finished batch of goroutines is
// waited for with a WaitGroup, its cheapest way; one goroutine with an unbuffered channel, reused.
// The collector runs as it does by default: it is part of what a goroutine costs.
package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

const million = 1000000

func yieldAmong(ops, count int) float64 {
	each := ops/count + 1
	var wg sync.WaitGroup
	wg.Add(count)
	began := now()
	for i := 0; i < count; i++ {
		go func() {
			for n := each; n > 0; n-- {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return float64(now()-began) / float64(each*count) * float64(ops)
}

var counters []uint64

func spawnJoin(ops int) float64 {
	if len(counters) < ops {
		counters = make([]uint64, ops)
	}
	for i := range counters {
		counters[i] = 0
	}
	var wg sync.WaitGroup
	began := now()
	wg.Add(ops)
	for i := 0; i < ops; i++ {
		c := &counters[i]
		go func() {
			*c++
			wg.Done()
		}()
	}
	wg.Wait()
	ns := float64(now() - began)
	for i := 0; i < ops; i++ {
		if counters[i] != 1 {
			die("a goroutine did not run once")
		}
	}
	return ns
}

func spawnAwait(ops int) float64 {
	done := make(chan struct{})
	count := 0
	began := now()
	for i := 0; i < ops; i++ {
		go func() {
			count++
			done <- struct{}{}
		}()
		<-done
	}
	ns := float64(now() - began)
	if count != ops {
		die("a goroutine did not run once")
	}
	return ns
}

func skynetNode(up chan<- int, first, size int) {
	if size == 1 {
		up <- first
		return
	}
	below := make(chan int)
	for i := 0; i < 10; i++ {
		go skynetNode(below, first+i*(size/10), size/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-below
	}
	up <- sum
}

func skynet(ops int) float64 {
	size := 1000
	if ops >= million {
		size = million
	}
	began := now()
	for done := 0; done < ops; done += size {
		up := make(chan int)
		go skynetNode(up, 0, size)
		if <-up != size*(size-1)/2 {
			die("a wrong sum")
		}
	}
	return float64(now() - began)
}

func statusKiB(key string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		die(err.Error())
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			kib, _ := strconv.Atoi(strings.Fields(line)[1])
			return kib
		}
	}
	return 0
}

func memory() float64 {
	return 1024 * float64(statusKiB("VmRSS:")+statusKiB("VmPTE:"))
}

func parked(ops int) float64 {
	gate := make(chan struct{})
	var at, gone sync.WaitGroup
	at.Add(ops)
	gone.Add(ops)
	before := memory()
	for i := 0; i < ops; i++ {
		go func() {
			at.Done()
			<-gate
			gone.Done()
		}()
	}
	at.Wait()
	runtime.Gosched()
	bytes := (memory() - before) / float64(ops)
	close(gate)
	gone.Wait()
	return bytes
}

var cases = map[string]benchCase{
	"yield-2":      {paced, func(ops int) float64 { return yieldAmong(ops, 2) }, 0},
	"yield-1000":   {paced, func(ops int) float64 { return yieldAmong(ops, 1000) }, 0},
	"spawn-join":   {fixed, spawnJoin, million},
	"spawn-await":  {paced, spawnAwait, 0},
	"skynet":       {fixed, skynet, million},
	"parked-fiber": {once, parked, million},
}
