// Go: an actor is a goroutine with a channel, and its state is the goroutine's own. The cases are those of
// bench/actors/cases.h, the frame and its clocks those of bench/tasks/tasks.h. A channel has room for one message where at
// most one waits. Where senders are faster than the receiver it has room for a thousand, and a full one holds its
// senders back, so they need no batches. A call has a channel of its own for the reply: a late reply must not meet the
// next call. A supervisor starts its child in a goroutine that recovers from a panic, and starts the next one. Go has no
// links and no monitors. The collector runs as it does by default.
package main

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

const (
	ring    = 100
	senders = 100
	batch   = 100
	bigs    = 120
	mailbox = 1000
	peak    = 2000000
	idlers  = 1000000
)

func since(began int64) float64 {
	return float64(now() - began)
}

// ---- ping-pong and ring ----

func passer(in, out chan int, done chan bool) {
	for left := range in {
		if left == 0 {
			done <- true
		} else {
			out <- left - 1
		}
	}
}

func around(hops, count int) float64 {
	boxes := make([]chan int, count)
	done := make(chan bool)
	for i := range boxes {
		boxes[i] = make(chan int, 1)
	}
	for i := range boxes {
		go passer(boxes[i], boxes[(i+1)%count], done)
	}
	began := now()
	boxes[0] <- hops
	<-done
	ns := since(began)
	for _, box := range boxes {
		close(box)
	}
	return ns
}

// ---- counting and fan-in ----

func counter(in chan int, total int, done chan bool) {
	sum := 0
	for sum < total {
		sum += <-in
	}
	done <- true
}

func fanIn(ops, count int) float64 {
	each := ops/count + 1
	box, done := make(chan int, mailbox), make(chan bool)
	go counter(box, each*count, done)
	began := now()
	for i := 0; i < count; i++ {
		go func() {
			for n := each; n > 0; n-- {
				box <- 1
			}
		}()
	}
	<-done
	return since(began) / float64(each*count) * float64(ops)
}

// ---- big ----

type talk struct {
	isPong bool
	from   int
}

func talker(me, pings int, boxes []chan talk, running *sync.WaitGroup) {
	seed := uint64(me + 1)
	ping := func() {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		other := int(seed % (bigs - 1))
		if other >= me {
			other++
		}
		boxes[other] <- talk{false, me}
	}
	ping()
	for m := range boxes[me] {
		if !m.isPong {
			boxes[m.from] <- talk{true, me}
			continue
		}
		pings--
		if pings > 0 {
			ping()
		} else {
			running.Done()
		}
	}
}

func big(ops int) float64 {
	each := ops/(2*bigs) + 1
	boxes := make([]chan talk, bigs)
	var running sync.WaitGroup
	running.Add(bigs)
	for i := range boxes {
		boxes[i] = make(chan talk, 2*bigs) // a ping of each, and a pong: no send waits
	}
	began := now()
	for i := range boxes {
		go talker(i, each, boxes, &running)
	}
	running.Wait()
	ns := since(began)
	for _, box := range boxes {
		close(box)
	}
	return ns / float64(2*each*bigs) * float64(ops)
}

// ---- create, message, end ----

func child(in chan chan bool, alive *sync.WaitGroup) {
	parent := <-in
	if parent != nil {
		parent <- true
	}
	alive.Done()
}

func create(ops int) float64 {
	var alive sync.WaitGroup
	box := make(chan bool, 1)
	began := now()
	for left := ops; left > 0; {
		count := batch
		if left < count {
			count = left
		}
		left -= count
		alive.Add(count)
		for ; count > 0; count-- {
			to := make(chan chan bool, 1)
			go child(to, &alive)
			if count == 1 {
				to <- box
			} else {
				to <- nil
			}
		}
		<-box
	}
	alive.Wait()
	return since(began)
}

// ---- call ----

type request struct {
	reply chan int
}

func server(in chan request) {
	calls := 0
	for r := range in {
		calls++
		r.reply <- calls
	}
}

func call(ops int) float64 {
	to, done := make(chan request, 1), make(chan int)
	go server(to)
	began := now()
	go func() {
		answer := 0
		for n := ops; n > 0; n-- {
			r := request{make(chan int, 1)}
			to <- r
			answer = <-r.reply
		}
		done <- answer
	}()
	if answer := <-done; answer != ops {
		die("calls were lost")
	}
	ns := since(began)
	close(to)
	return ns
}

// ---- crash and restart ----

var crashed = errors.New("crashed")

func mortal(left int) {
	box := make(chan int, 1)
	box <- left
	if <-box > 0 {
		panic(crashed)
	}
}

// Run a child in a goroutine of its own; report its panic, or nil.
func watch(left int, ended chan any) {
	defer func() { ended <- recover() }()
	mortal(left)
}

func restart(ops int) float64 {
	done := make(chan int)
	began := now()
	go func() {
		restarts := 0
		for ended := make(chan any); ; restarts++ {
			go watch(ops-restarts, ended)
			if <-ended == nil {
				break
			}
		}
		done <- restarts
	}()
	if restarts := <-done; restarts != ops {
		die("restarts were lost")
	}
	return since(began)
}

// ---- memory ----

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

func peakOf(count int) func(ops int) float64 {
	return func(ops int) float64 {
		fanIn(ops, count)
		return float64(statusKiB("VmHWM:")) / 1024
	}
}

func memory() float64 {
	return 1024 * float64(statusKiB("VmRSS:")+statusKiB("VmPTE:"))
}

func idler(in chan int, begun *sync.WaitGroup) {
	var state [64]byte
	begun.Done()
	for n := range in {
		state[n]++
	}
}

func smallest(in chan int, begun *sync.WaitGroup) {
	begun.Done()
	for range in {
	}
}

func idle(actor func(in chan int, begun *sync.WaitGroup)) func(ops int) float64 {
	return func(ops int) float64 {
		var begun sync.WaitGroup
		before := memory()
		for i := 0; i < ops; i++ {
			begun.Add(1)
			go actor(make(chan int), &begun)
			if i%1000 == 999 {
				begun.Wait()
			}
		}
		begun.Wait()
		runtime.Gosched()
		return (memory() - before) / float64(ops)
	}
}

var cases = map[string]benchCase{
	"ping-pong":     {paced, func(ops int) float64 { return around(ops, 2) }, 0},
	"ring":          {paced, func(ops int) float64 { return around(ops, ring) }, 0},
	"counting":      {paced, func(ops int) float64 { return fanIn(ops, 1) }, 0},
	"fan-in":        {paced, func(ops int) float64 { return fanIn(ops, senders) }, 0},
	"big":           {paced, big, 0},
	"create":        {paced, create, 0},
	"call":          {paced, call, 0},
	"restart":       {paced, restart, 0},
	"counting-peak": {once, peakOf(1), peak},
	"fan-in-peak":   {once, peakOf(senders), peak},
	"idle-64":       {once, idle(idler), idlers},
	"idle-0":        {once, idle(smallest), idlers},
}
