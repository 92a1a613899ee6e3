package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const dialTimeout = 10 * time.Second

// faults is what an apiproxy does to the traffic on purpose.
type faults struct {
	delay  time.Duration // hold every piece of data so long, each way
	rate   int           // bytes a second, each way; 0 is unlimited
	refuse bool          // close every connection at once
	stall  bool          // accept, and never answer
}

// runAPIProxy listens in the network namespace it was started in and connects
// in another one: it is how the machine reaches the API server, whose node has
// a network of its own. Chosen over a veth pair because nothing of it shows on
// the machine but one loopback listener, and because it is the faulty API
// server of the tests too.
func runAPIProxy() {
	netns := flag.String("netns", "", "connect in this network namespace (a path)")
	listen := flag.String("listen", "", "address to listen on")
	target := flag.String("target", "127.0.0.1:6443", "address to connect to")
	var f faults
	flag.DurationVar(&f.delay, "delay", 0, "hold every piece of data so long, each way")
	flag.IntVar(&f.rate, "rate", 0, "bytes a second, each way (0: unlimited)")
	flag.BoolVar(&f.refuse, "refuse", false, "close every connection at once")
	flag.BoolVar(&f.stall, "stall", false, "accept connections and never answer")
	flag.Parse()

	listener, err := net.Listen("tcp", *listen)
	exitOn("apiproxy", err)
	ns, err := os.Open(*netns)
	exitOn("apiproxy", err)
	for {
		client, err := listener.Accept()
		exitOn("apiproxy", err)
		go func() {
			defer client.Close()
			serve(client, ns, *target, f)
		}()
	}
}

func serve(client net.Conn, ns *os.File, target string, f faults) {
	if f.refuse {
		return
	}
	if f.stall {
		_, _ = io.Copy(io.Discard, client)
		return
	}
	server, err := dialIn(ns, target)
	if err != nil {
		log.Print(err)
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { f.pump(server, client) })
	both.Go(func() { f.pump(client, server) })
	both.Wait()
}

// dialIn makes the socket on a thread that has entered ns. The thread stays
// locked, so the runtime ends it together with the goroutine.
func dialIn(ns *os.File, target string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			dialled <- result{nil, err}
			return
		}
		conn, err := net.DialTimeout("tcp", target, dialTimeout)
		dialled <- result{conn, err}
	}()
	r := <-dialled
	return r.conn, r.err
}

// pump moves src's data to dst until it ends, and hands the end on.
func (f faults) pump(dst, src net.Conn) {
	defer func() {
		if tcp, ok := dst.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	if f.delay == 0 && f.rate == 0 {
		_, _ = io.Copy(dst, src) // spliced in the kernel
		return
	}
	piece := make([]byte, 16<<10)
	for {
		n, err := src.Read(piece)
		if n > 0 {
			time.Sleep(f.delay)
			if f.rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(f.rate))
			}
			if _, err := dst.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
