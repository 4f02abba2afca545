// Go: one goroutine does the work, message by message. The collector runs as it does by default, beside the goroutine, on the one
// CPU that the program may use; the clock is the process's CPU time, so its work counts. The cases are those of bench/gc/cases.h,
// the frame and its clocks those of bench/tasks/tasks.h. An update by path copy makes new nodes, as ours does. The map is the same
// table. A full collection is runtime.GC(): Go does not move objects, and stops the program for a small part of it only. Its time
// is that of the whole collection. An idle actor is a goroutine that waits for its channel.
package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

const (
	allocs      = 1000
	batch       = 100
	updateDepth = 20
	places      = 1 << 20
	idlers      = 200000
)

func random(seed *uint64) uint64 {
	*seed ^= *seed << 13
	*seed ^= *seed >> 7
	*seed ^= *seed << 17
	return *seed
}

// ---- objects of 32 bytes ----

type four [4]uint64

var kept *four // an object that escapes

func alloc(ops int) float64 {
	began := now()
	for i := 0; i < ops; i++ {
		kept = &four{uint64(i)}
	}
	return float64(now() - began)
}

// ---- trees ----

type tree struct {
	left, right *tree
}

func makeTree(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{makeTree(depth - 1), makeTree(depth - 1)}
}

func depthOf(t *tree) int {
	found := 0
	for ; t.left != nil; t = t.left {
		found++
	}
	return found
}

func trees(depth int) func(ops int) float64 {
	return func(ops int) float64 {
		nodes := 2<<depth - 1
		messages := (ops + nodes - 1) / nodes
		live := makeTree(depth)
		runtime.GC()
		began := now()
		for i := 0; i < messages; i++ {
			if depthOf(makeTree(depth)) != depth {
				die("a wrong depth")
			}
		}
		ns := float64(now() - began)
		runtime.KeepAlive(live)
		return ns / float64(messages*nodes) * float64(ops)
	}
}

// ---- updates by path copy ----

type entry struct {
	left, right *entry
	key, value  uint64
}

func entries(from uint64, depth int) *entry {
	if depth == 0 {
		return nil
	}
	half := uint64(1)<<(depth-1) - 1
	return &entry{entries(from, depth-1), entries(from+half+1, depth-1), from + half, 0}
}

func updated(old *entry, key uint64) *entry {
	e := *old
	if key < e.key {
		e.left = updated(e.left, key)
	} else if key > e.key {
		e.right = updated(e.right, key)
	} else {
		e.value++
	}
	return &e
}

func update(ops int) float64 {
	seed := uint64(88172645463325252)
	live := entries(0, updateDepth)
	runtime.GC()
	began := now()
	for i := 0; i < ops; i++ {
		live = updated(live, random(&seed)%(1<<updateDepth-1))
	}
	ns := float64(now() - began)
	runtime.KeepAlive(live)
	return ns
}

// ---- a map, in place ----

type cell struct {
	key, value uint64
	more       [2]uint64
}

func mapped(ops int) float64 {
	seed := uint64(88172645463325252)
	at := make([]*cell, places)
	for i := range at {
		at[i] = &cell{key: uint64(i)}
	}
	runtime.GC()
	began := now()
	for i := 0; i < ops; i++ {
		key := random(&seed) % places
		at[key] = &cell{key: key, value: at[key].value + 1}
	}
	ns := float64(now() - began)
	runtime.KeepAlive(at)
	return ns
}

// ---- full collections, in microseconds ----

// Node i of n, with its subtrees.
func heapTree(i, n int) *entry {
	if i > n {
		return nil
	}
	return &entry{heapTree(2*i, n), heapTree(2*i+1, n), uint64(i), 0}
}

func pause(n int) func(ops int) float64 {
	return func(ops int) float64 {
		root := heapTree(1, n)
		runtime.GC()
		ns := 0.0
		for i := 0; i < ops; i++ {
			began := now()
			runtime.GC()
			took := float64(now() - began)
			if ns == 0 || took < ns {
				ns = took
			}
		}
		runtime.KeepAlive(root)
		return ns / 1000
	}
}

// ---- idle goroutines ----

// A number of /proc/self/status, in KiB.
func statusKiB(key string) int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			n, _ := strconv.Atoi(strings.Fields(line)[1])
			return n
		}
	}
	return 0
}

func memory() float64 {
	return 1024 * float64(statusKiB("VmRSS:")+statusKiB("VmPTE:"))
}

func idler(in chan int, begun *sync.WaitGroup) {
	begun.Done()
	for range in {
	}
}

func idle(ops int) float64 {
	var begun sync.WaitGroup
	before := memory()
	for i := 0; i < ops; i++ {
		begun.Add(1)
		go idler(make(chan int), &begun)
		if i%1000 == 999 {
			begun.Wait()
		}
	}
	begun.Wait()
	runtime.Gosched()
	return (memory() - before) / float64(ops)
}

var cases = map[string]benchCase{
	"alloc-32":      {paced, alloc, 0},
	"tree-10":       {paced, trees(10), 0},
	"tree-15":       {paced, trees(15), 0},
	"tree-20":       {paced, trees(20), 0},
	"tree-10-plain": {paced, trees(10), 0},
	"tree-15-plain": {paced, trees(15), 0},
	"tree-20-plain": {paced, trees(20), 0},
	"update":        {fixed, update, 100000},
	"update-plain":  {fixed, update, 100000},
	"map":           {fixed, mapped, 1000000},
	"pause-10k":     {once, pause(10000), 50},
	"pause-100k":    {once, pause(100000), 10},
	"pause-1m":      {once, pause(1000000), 3},
	"idle":          {once, idle, idlers},
}
