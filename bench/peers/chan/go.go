// Go: its own channels and select. GOMAXPROCS is the number of workers. The measuring and the clocks are
// those of bench/tasks/tasks.h: the fastest of five runs; CPU time with one worker, the wall's with more.
// Go has no oneshot: a channel of capacity 1 that is made, used once and dropped is what one writes.
package main

import "sync"

const capacity = 128

var sink uint64

func pingPong(ops, size int) float64 {
	to, from := make(chan uint64, size), make(chan uint64, size)
	began := now()
	go func() {
		for i := 0; i < ops; i++ {
			from <- <-to
		}
	}()
	for i := 0; i < ops; i++ {
		to <- uint64(i)
		sink = <-from
	}
	return float64(now() - began)
}

func stream(ops, pairs int) float64 {
	c := make(chan uint64, capacity)
	each := ops/pairs + 1
	var wg sync.WaitGroup
	wg.Add(2 * pairs)
	began := now()
	for i := 0; i < pairs; i++ {
		go func() {
			for i := 0; i < each; i++ {
				c <- uint64(i)
			}
			wg.Done()
		}()
		go func() {
			var sum uint64
			for i := 0; i < each; i++ {
				sum += <-c
			}
			sink = sum
			wg.Done()
		}()
	}
	wg.Wait()
	return float64(now() - began)
}

func sendRecv(ops int) float64 {
	c := make(chan uint64, 1)
	began := now()
	for i := 0; i < ops; i++ {
		c <- uint64(i)
		sink = <-c
	}
	return float64(now() - began)
}

func oneshot(ops int) float64 {
	began := now()
	for i := 0; i < ops; i++ {
		c := make(chan uint64, 1)
		c <- uint64(i)
		sink = <-c
	}
	return float64(now() - began)
}

func selectReady(ops int) float64 {
	var c [4]chan uint64
	for i := range c {
		c[i] = make(chan uint64, 1)
		c[i] <- 1
	}
	began := now()
	for i := 0; i < ops; i++ {
		select {
		case v := <-c[0]:
			c[0] <- v
		case v := <-c[1]:
			c[1] <- v
		case v := <-c[2]:
			c[2] <- v
		case v := <-c[3]:
			c[3] <- v
		}
	}
	return float64(now() - began)
}

var cases = map[string]benchCase{
	"rendezvous":  {paced, func(ops int) float64 { return pingPong(ops, 0) }, 0},
	"ping-pong-1": {paced, func(ops int) float64 { return pingPong(ops, 1) }, 0},
	"spsc":        {paced, func(ops int) float64 { return stream(ops, 1) }, 0},
	"mpmc":        {paced, func(ops int) float64 { return stream(ops, 4) }, 0},
	"send-recv":   {paced, sendRecv, 0},
	"oneshot":     {paced, oneshot, 0},
	"select-4":    {paced, selectReady, 0},
}
