// sync.Mutex, sync.RWMutex, and for a semaphore what Go has instead: a buffered channel.
package main

import "sync"

const (
	lockers    = 8
	permits    = 4
	writeEvery = 100
)

var mutex sync.Mutex
var rwlock sync.RWMutex
var semaphore = make(chan struct{}, permits)
var counter uint64
var sink uint64

func mutexOften(ops int) {
	for ; ops > 0; ops-- {
		mutex.Lock()
		counter++
		mutex.Unlock()
	}
}

func readOften(ops int) {
	var seen uint64
	for ; ops > 0; ops-- {
		rwlock.RLock()
		seen += counter
		rwlock.RUnlock()
	}
	if seen == 1 {
		sink = seen
	}
}

func readMostly(ops int) {
	var seen uint64
	for ; ops > 0; ops-- {
		if ops%writeEvery == 0 {
			rwlock.Lock()
			counter++
			rwlock.Unlock()
		} else {
			rwlock.RLock()
			seen += counter
			rwlock.RUnlock()
		}
	}
	if seen == 1 {
		sink = seen
	}
}

func permitOften(ops int) {
	for ; ops > 0; ops-- {
		semaphore <- struct{}{}
		<-semaphore
	}
}

func init() {
	cases["mutex"] = alone(mutexOften)
	cases["mutex-8"] = together(lockers, mutexOften)
	cases["rwlock-read"] = alone(readOften)
	cases["rwlock-8"] = together(lockers, readMostly)
	cases["semaphore"] = alone(permitOften)
	cases["semaphore-8"] = together(lockers, permitOften)
}
