// Go: a goroutine for each connection, or net/http's server. GOMAXPROCS is what the process may run on: one CPU.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

func echo(c net.Conn, size int) {
	defer c.Close()
	buffer := make([]byte, size)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if _, err = c.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func hello(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("hello, world\n"))
}

func main() {
	name := os.Args[len(os.Args)-1]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	if strings.HasPrefix(name, "http") {
		http.Serve(listener, http.HandlerFunc(hello))
	}
	size := 4096
	if strings.HasSuffix(name, "16k") {
		size = 32768
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go echo(c, size)
	}
}
