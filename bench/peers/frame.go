// The frame of the programs in Go: cases by name and number of workers, and what is measured of them. The kinds of
// cases and the clocks are those of bench/tasks/tasks.h. A program is this file and one with the cases.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

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
