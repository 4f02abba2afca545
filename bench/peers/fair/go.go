// Go: goroutines that sleep, compute or make system calls. GOMAXPROCS is the number of workers. What the
// tickers are is said in bench/fair/tickers.h; the clocks of the short cases are those of
// bench/tasks/tasks.h. A goroutine that computes is preempted by a signal after 10 ms: that is what Go
// does by itself, and it is left on. Go has no call to run something on a pool of threads; a blocking call is
// made where it stands, so 100 of them are 100 goroutines in nanosleep(2).
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	tickers = 1000
	ticks   = 100
	tickNs  = int64(10 * time.Millisecond)
	hogNs   = int64(100 * time.Millisecond)
	leadNs  = int64(20 * time.Millisecond)
)

var procs = 1
var seconds = 0.2
var isOver int32
var startNs int64
var late [tickers][ticks]int32 // in us, plus 1; 0: it has not come

func die(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}

func clock(which uintptr) int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, which, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// With one worker the process's CPU time, with more the wall's.
func now() int64 {
	if procs == 1 {
		return clock(2)
	}
	return clock(1)
}

var epoch = time.Now()

// Go's own monotonic clock, by way of the vdso.
func wall() int64 {
	return int64(time.Since(epoch))
}

func due(ticker, tick int) int64 {
	return startNs + int64(ticker)*(tickNs/tickers) + int64(tick)*tickNs
}

func runTicker(me int) {
	for k := 0; k < ticks; k++ {
		time.Sleep(time.Duration(due(me, k) - wall()))
		d := (wall() - due(me, k)) / 1000
		if d < 0 {
			d = 0
		}
		atomic.StoreInt32(&late[me][k], int32(d)+1)
	}
}

func hog() {
	for atomic.LoadInt32(&isOver) == 0 {
		until := wall() + hogNs
		for wall() < until {
		}
		runtime.Gosched()
	}
}

func loop() {
	for atomic.LoadInt32(&isOver) == 0 {
	}
}

type figures struct{ p50, p99, delivered float64 }

// Main waits in nanosleep(2), which gives its proc up, as a thread outside does elsewhere. It may come back late: what
// counts as delivered is told by the end of the second, not by when it looks.
func closeBooks() figures {
	end := startNs + ticks*tickNs
	t := syscall.NsecToTimespec(end - wall())
	syscall.Nanosleep(&t, nil)
	at := wall()
	all := make([]int, 0, tickers*ticks)
	delivered := 0
	for i := 0; i < tickers; i++ {
		for k := 0; k < ticks; k++ {
			us := int64(atomic.LoadInt32(&late[i][k])) - 1
			if due(i, k) > end {
				continue
			}
			if us >= 0 && due(i, k)+us*1000 <= end {
				delivered++
			}
			if us < 0 {
				us = (at - due(i, k)) / 1000
			}
			all = append(all, int(us))
		}
	}
	sort.Ints(all)
	n := len(all)
	return figures{float64(all[n/2]+1) / 1000, float64(all[n/100*99]+1) / 1000, 100*float64(delivered)/float64(n) + 1e-9}
}

func beside(fn func(), count int) figures {
	startNs = wall() + leadNs
	for i := 0; i < tickers; i++ {
		go runTicker(i)
	}
	for i := 0; i < count; i++ {
		go fn()
	}
	return closeBooks()
}

// Work beside endless loops: bench/fair/work.h.
const (
	workParts   = 1000
	workPart    = 1000
	workRequest = 20000
)

var workEnd int64
var kept float64

func workSum(from, to int) float64 {
	sum := 0.0
	for i := from; i < to; i++ {
		sum += 1 / float64(i+1)
	}
	return sum
}

// As many goroutines as procs; each takes the next part.
func reduceOnce(sums []float64) {
	var next int64
	var wg sync.WaitGroup
	wg.Add(procs)
	for i := 0; i < procs; i++ {
		go func() {
			for {
				part := int(atomic.AddInt64(&next, 1)) - 1
				if part >= workParts {
					break
				}
				sums[part] = workSum(part*workPart, (part+1)*workPart)
			}
			wg.Done()
		}()
	}
	wg.Wait()
	sum := 0.0
	for _, s := range sums {
		sum += s
	}
	kept = sum
}

func reduce() int {
	sums := make([]float64, workParts)
	count := 0
	for ; wall() < workEnd; count++ {
		reduceOnce(sums)
	}
	return count
}

func request() int {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	count := 0
	for ; wall() < workEnd; count++ {
		kept = workSum(0, workRequest)
		there <- count
		count = <-back
	}
	close(there)
	return count
}

func rateOf(fn func() int, count int) float64 {
	for i := 0; i < count; i++ {
		go loop()
	}
	t := syscall.NsecToTimespec(300e6)
	syscall.Nanosleep(&t, nil)
	since := wall()
	workEnd = since + int64(time.Second)
	done := make(chan int)
	go func() { done <- fn() }()
	n := <-done
	return float64(n) / (float64(wall()-since) / 1e9)
}

func calls100(int) float64 {
	var wg sync.WaitGroup
	wg.Add(100)
	began := clock(1)
	for i := 0; i < 100; i++ {
		go func() {
			t := syscall.NsecToTimespec(50e6)
			syscall.Nanosleep(&t, nil)
			wg.Done()
		}()
	}
	wg.Wait()
	return float64(clock(1)-began) / 1e6
}

// What a system call costs more than a raw one: entersyscall and exitsyscall.
func bracket(ops int) float64 {
	began := now()
	for i := 0; i < ops; i++ {
		syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	middle := now()
	for i := 0; i < ops; i++ {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return float64((middle - began) - (now() - middle))
}

func least(a, b float64) float64 {
	if a < b {
		return a
	}
	return b
}

func paced(run func(int) float64) float64 {
	ops, part := 1024, int64(seconds*1e9/5)
	began := clock(1)
	ns := run(ops)
	for clock(1)-began < part {
		ops *= 2
		began = clock(1)
		ns = run(ops)
	}
	for i := 1; i < 5; i++ {
		ns = least(ns, run(ops))
	}
	return ns / float64(ops)
}

func figure(base string) float64 {
	if name, number, is := strings.Cut(base, "-"); is {
		n, _ := strconv.Atoi(number)
		switch name {
		case "loops":
			return beside(loop, n).p99
		case "reduce":
			return rateOf(reduce, n)
		case "request":
			return rateOf(request, n)
		}
	}
	switch base {
	case "hogs-p50":
		return beside(hog, procs).p50
	case "hogs-p99":
		return beside(hog, procs).p99
	case "hogs-wakes":
		return beside(hog, procs).delivered
	case "calls":
		return calls100(0)
	case "bracket":
		return paced(bracket)
	}
	die("no case " + base)
	return 0
}

func main() {
	if len(os.Args) < 2 {
		die("usage: CASE.pPROCS [--seconds=S]")
	}
	name := os.Args[1]
	base, workers, _ := strings.Cut(name, ".p")
	if n, err := strconv.Atoi(workers); err == nil {
		procs = n
	}
	for _, word := range os.Args[2:] {
		if strings.HasPrefix(word, "--seconds=") {
			seconds, _ = strconv.ParseFloat(word[len("--seconds="):], 64)
		}
	}
	runtime.GOMAXPROCS(procs)
	fmt.Println(name, figure(base))
	os.Exit(0)
}
