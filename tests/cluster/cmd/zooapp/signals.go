package main

import (
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	received     = map[string]int{}
	receivedLock sync.Mutex
)

// countSignals takes every signal that can be taken and only counts it:
// SIGTERM doesn't end this program. Left alone are
//   - SIGKILL and SIGSTOP, which nobody can take,
//   - SIGURG, which the Go runtime sends to itself all the time to preempt,
//   - SIGPIPE, which the kernel sends for our own writes to a closed connection,
//   - 32 to 34, which the Go runtime keeps for C libraries.
//
// SIGCHLD is counted: an orphan that ends under this PID 1 shows here.
func countSignals() {
	signals := make(chan os.Signal, 1024)
	const last = 64
	for n := syscall.Signal(1); n <= last; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGURG, syscall.SIGPIPE, 32, 33, 34:
		default:
			signal.Notify(signals, n)
		}
	}
	go func() {
		for s := range signals {
			receivedLock.Lock()
			received[signalName(s.(syscall.Signal))]++
			receivedLock.Unlock()
		}
	}()
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// serveSignals answers {"SIGTERM": 2}: the signals received so far.
func serveSignals(w http.ResponseWriter, _ *http.Request) {
	receivedLock.Lock()
	defer receivedLock.Unlock()
	writeJSON(w, received)
}
