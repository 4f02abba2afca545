// Go: its own channels and select. GOMAXPROCS is the number of workers. The measuring and the clocks are
// those of bench/tasks/tasks.h: the fastest of five runs; CPU time with one worker, the wall's with more.
// Go has no oneshot: a channel of capacity 1 that is made, used once and dropped is what one writes.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

const capacity = 128

var procs = 1
var seconds = 0.2
var fixedOps = 0
var sink uint64

func now() int64 {
	clock := uintptr(1) // CLOCK_MONOTONIC
	if procs == 1 {
		clock = 2 // CLOCK_PROCESS_CPUTIME_ID
	}
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

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

var cases = map[string]func(int) float64{
	"rendezvous":  func(ops int) float64 { return pingPong(ops, 0) },
	"ping-pong-1": func(ops int) float64 { return pingPong(ops, 1) },
	"spsc":        func(ops int) float64 { return stream(ops, 1) },
	"mpmc":        func(ops int) float64 { return stream(ops, 4) },
	"send-recv":   sendRecv,
	"oneshot":     oneshot,
	"select-4":    selectReady,
}

func measure(run func(int) float64) float64 {
	if fixedOps != 0 {
		return run(fixedOps) / float64(fixedOps)
	}
	ops, part := 1024, seconds*1e9/5
	ns := run(ops)
	for ns < part {
		ops *= 2
		ns = run(ops)
	}
	for i := 1; i < 5; i++ {
		if again := run(ops); again < ns {
			ns = again
		}
	}
	return ns / float64(ops)
}

func main() {
	name := os.Args[1]
	base, workers, _ := strings.Cut(name, ".p")
	if n, err := strconv.Atoi(workers); err == nil {
		procs = n
	}
	for _, word := range os.Args[2:] {
		if strings.HasPrefix(word, "--seconds=") {
			seconds, _ = strconv.ParseFloat(word[len("--seconds="):], 64)
		} else if strings.HasPrefix(word, "--ops=") {
			fixedOps, _ = strconv.Atoi(word[len("--ops="):])
		}
	}
	run, ok := cases[base]
	if !ok {
		fmt.Fprintln(os.Stderr, "no case "+name)
		os.Exit(1)
	}
	runtime.GOMAXPROCS(procs)
	fmt.Println(name, measure(run))
}
