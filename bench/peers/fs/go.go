// Go: os.File, filepath.WalkDir.
package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	page    = 4096
	size    = 64 << 20
	chunk   = 128 << 10
	readers = 32
)

func dir() string {
	if d := os.Getenv("BENCH_FS_DIR"); d != "" {
		return d
	}
	return "build/bench-fs"
}

func pages() *os.File {
	f, err := os.Open(dir() + "/pages") // bench_fs has made it
	if err != nil {
		die(err.Error())
	}
	buf := make([]byte, chunk)
	for at := int64(0); at < size; at += chunk {
		f.ReadAt(buf, at)
	}
	return f
}

func pageOf(n int) int64 {
	return int64((uint64(n)*2654435761 + 12345) % (size / page) * page)
}

func cached(ops int) float64 {
	f, buf := pages(), make([]byte, page)
	defer f.Close()
	began := now()
	for i := 0; i < ops; i++ {
		if _, err := f.ReadAt(buf, pageOf(i)); err != nil {
			die(err.Error())
		}
	}
	return float64(now() - began)
}

func sequential(ops int) float64 {
	f, buf := pages(), make([]byte, chunk)
	defer f.Close()
	began := now()
	for i := 0; i < ops; i++ {
		if _, err := f.ReadAt(buf, int64(i)*chunk%size); err != nil {
			die(err.Error())
		}
	}
	return float64(now() - began)
}

func cold(ops int) float64 {
	f := pages()
	defer f.Close()
	syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, 4, 0, 0)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for r := 0; r < readers; r++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			buf := make([]byte, page)
			for i := int(next.Add(1)) - 1; i < ops; i = int(next.Add(1)) - 1 {
				f.ReadAt(buf, pageOf(i))
			}
		}()
	}
	wg.Wait()
	return float64(time.Since(began))
}

func small(ops int) float64 {
	d := dir() + "/small/"
	os.MkdirAll(d, 0755)
	for i := 0; i < ops; i++ {
		os.Remove(d + strconv.Itoa(i))
	}
	text := make([]byte, 32)
	began := now()
	for i := 0; i < ops; i++ {
		name := d + strconv.Itoa(i)
		if err := os.WriteFile(name, text, 0666); err != nil {
			die(err.Error())
		}
		if _, err := os.Stat(name); err != nil {
			die(err.Error())
		}
	}
	return float64(now() - began)
}

func walk(ops int) float64 {
	names := 0
	began := now()
	filepath.WalkDir(dir()+"/tree", func(path string, e fs.DirEntry, err error) error {
		names++
		return nil
	})
	if names != ops {
		die("names")
	}
	return float64(now() - began)
}

var cases = map[string]benchCase{
	"read-cached":     {paced, cached, 0},
	"read-cold":       {fixed, cold, 4096},
	"read-sequential": {paced, sequential, 0},
	"small-files":     {fixed, small, 10000},
	"walk":            {fixed, walk, 10201},
}
