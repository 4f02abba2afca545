// Go: timers and goroutines that sleep. GOMAXPROCS is the number of workers. What the sleepers are is said in
// bench/timers/late.h; the kinds of cases and the clocks are those of bench/tasks/tasks.h. A timer that is
// made and cancelled is time.NewTimer and Stop; nobody waits for it, which spares Go what the others pay.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const batch = 1000

var procs = 1
var seconds = 0.2
var fixedOps = 0
var due, by []int64

func die(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}

func clock(id uintptr) int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func now() int64 {
	if procs == 1 {
		return clock(2) // CLOCK_PROCESS_CPUTIME_ID
	}
	return clock(1) // CLOCK_MONOTONIC
}

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

type kind int

const (
	paced kind = iota
	fixed
	once
)

type benchCase struct {
	kind kind
	run  func(int) float64
	ops  int
}

var cases = map[string]benchCase{
	"timer-cancel":     {paced, timerCancel, 0},
	"sleeps-100k-late": {once, sleepsLate, 100000},
	"sleeps-1m-create": {fixed, sleepAll, 1000000},
	"sleeps-1m-late":   {once, sleepsLate, 1000000},
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
