package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// lies are what a terminal, a line-based parser or an ssh config would act on
// if it were printed as it stands.
const lieAsArgv0 = "/bin/\x1b]0;title taken\x07\x1b[2J\x1b[31mapp\nProxyCommand touch /tmp/owned\r\n"

// lieAsName fits the kernel's 15 bytes, so that its newline is kept.
const lieAsName = "\x1b[2Jx\ny)\tR 1 1"

// disguise starts this program once more, in place, with a lying argv[0], and
// then takes a lying process name: /proc/1/cmdline, comm, stat and status all
// hold escape sequences, newlines and a ")" that ends nothing.
func disguise() {
	if os.Args[0] != lieAsArgv0 {
		args := slices.Concat([]string{lieAsArgv0}, os.Args[1:])
		err := syscall.Exec("/proc/self/exe", args, os.Environ())
		fmt.Fprintln(os.Stderr, "disguise:", err)
	}
	// Written to comm, not by prctl: the main thread's name is the one that
	// everybody reads, and this goroutine may be on another thread.
	if err := os.WriteFile("/proc/self/comm", []byte(lieAsName), 0); err != nil {
		fmt.Fprintln(os.Stderr, "disguise:", err)
	}
}
