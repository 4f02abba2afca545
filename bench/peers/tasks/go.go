// Go: goroutines and channels, as its own documentation has them. GOMAXPROCS is the number of workers.
// The kinds of cases and the clocks are those of bench/tasks/tasks.h. A finished batch of goroutines is
// waited for with a WaitGroup, its cheapest way; one goroutine with an unbuffered channel, reused.
// The collector runs as it does by default: it is part of what a goroutine costs.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const million = 1000000

var procs = 1
var seconds = 0.2
var fixedOps = 0

func die(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}

func now() int64 {
	clock := uintptr(1) // CLOCK_MONOTONIC
	if procs == 1 {
		clock = 2 // CLOCK_PROCESS_CPUTIME_ID
	}
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

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

type kind int

const (
	paced kind = iota
	fixed
	once
)

type benchCase struct {
	kind kind
	run  func(ops int) float64
	ops  int
}

var cases = map[string]benchCase{
	"yield-2":      {paced, func(ops int) float64 { return yieldAmong(ops, 2) }, 0},
	"yield-1000":   {paced, func(ops int) float64 { return yieldAmong(ops, 1000) }, 0},
	"spawn-join":   {fixed, spawnJoin, million},
	"spawn-await":  {paced, spawnAwait, 0},
	"skynet":       {fixed, skynet, million},
	"parked-fiber": {once, parked, million},
}

func least(a, b float64) float64 {
	if a < b {
		return a
	}
	return b
}

func measure(c benchCase) float64 {
	if c.kind == once {
		return c.run(c.ops)
	}
	if fixedOps != 0 {
		return c.run(fixedOps) / float64(fixedOps)
	}
	if c.kind == fixed {
		c.run(c.ops)
		until := time.Now().Add(time.Duration(seconds * 1e9))
		ns := c.run(c.ops)
		for time.Now().Before(until) {
			ns = least(ns, c.run(c.ops))
		}
		return ns / float64(c.ops)
	}
	ops, part := 1024, seconds*1e9/5
	ns := c.run(ops)
	for ns < part {
		ops *= 2
		ns = c.run(ops)
	}
	for i := 1; i < 5; i++ {
		ns = least(ns, c.run(ops))
	}
	return ns / float64(ops)
}

func main() {
	if len(os.Args) < 2 {
		die("usage: CASE.pPROCS [--seconds=S | --ops=N]")
	}
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
	c, ok := cases[base]
	if !ok {
		die("no case " + name)
	}
	runtime.GOMAXPROCS(procs)
	fmt.Println(name, measure(c))
}
