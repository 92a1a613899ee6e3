package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// tools are the few commands that a test wants to run in an image that has no
// other program. Each returns its exit code.
var tools = map[string]func(args []string) int{
	"get":   get,
	"ps":    ps,
	"cat":   cat,
	"ids":   func([]string) int { return report(json.NewEncoder(os.Stdout).Encode(ids())) },
	"sleep": sleep,
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// get prints a URL's answer; a connection that isn't made within 3 s fails.
func get(args []string) int {
	client := http.Client{Timeout: 3 * time.Second}
	response, err := client.Get(strings.Join(args, ""))
	if err != nil {
		return report(err)
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, response.Body)
	return report(err)
}

// ps prints PID, PPID, state (Z: a zombie nobody reaped), uid and command line
// of every process in sight, quoted.
func ps([]string) int {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		pid, notPID := strconv.Atoi(e.Name())
		if notPID != nil {
			continue
		}
		p, err := inspect(pid)
		if err == nil {
			fmt.Printf("%d %s %s %s %q %q\n", pid, p.parent, p.state, p.uid, p.name, p.cmdline)
		}
	}
	return report(err)
}

func cat(args []string) int {
	code := 0
	for _, path := range args {
		data, err := os.ReadFile(path)
		_, _ = os.Stdout.Write(data)
		code |= report(err)
	}
	return code
}

func sleep(args []string) int {
	duration, err := time.ParseDuration(strings.Join(args, ""))
	time.Sleep(duration)
	return report(err)
}
