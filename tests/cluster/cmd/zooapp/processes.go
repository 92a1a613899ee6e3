package main

import (
	"fmt"
	"os"
	"strings"
)

// process is what /proc says of one.
type process struct {
	name, parent, state, uid string
	cmdline                  []string
}

func inspect(pid int) (process, error) {
	var p process
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		fields := strings.Fields(value)
		switch {
		case key == "Name":
			p.name = value
		case key == "PPid":
			p.parent = value
		case key == "State" && len(fields) > 0:
			p.state = fields[0]
		case key == "Uid" && len(fields) > 0:
			p.uid = fields[0]
		}
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if text := strings.TrimSuffix(string(cmdline), "\x00"); text != "" {
		p.cmdline = strings.Split(text, "\x00")
	}
	return p, err
}
