package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attack plays the application as the attacker of a seat in its pod: whatever
// its own ids and the kernel allow it to do to the processes of other containers.
// It answers what succeeded, so that a test can hold podbench's report to it.
//
//	GET /attack                  read, write, trace and connect, on every victim
//	GET /attack?do=read,kill     those alone; kill is never done unasked
//	GET /attack?do=write&file=/p this file under the victim's root (repeatable)
func attack(w http.ResponseWriter, r *http.Request) {
	do := strings.Split(r.URL.Query().Get("do"), ",")
	if do[0] == "" {
		do = []string{"read", "write", "trace", "connect"}
	}
	files := r.URL.Query()["file"]
	if len(files) == 0 {
		files = []string{"/tmp/written-by-the-app"}
	}
	victims := []*victim{}
	for _, pid := range others() {
		v := &victim{PID: pid}
		if p, err := inspect(pid); err == nil {
			v.Name, v.UID, v.Cmdline = p.name, p.uid, p.cmdline
		}
		for _, deed := range do {
			switch deed {
			case "read":
				v.read()
			case "write":
				v.write(files)
			case "trace":
				v.trace()
			case "connect":
				v.connect()
			case "kill":
				v.note("kill", syscall.Kill(pid, syscall.SIGKILL))
			}
		}
		victims = append(victims, v)
	}
	writeJSON(w, map[string]any{"pid": os.Getpid(), "ids": ids(), "did": do, "victims": victims})
}

// victim is one process of another container and what we got from it. Succeeded and
// Failed hold the names of the deeds; Failed says why.
type victim struct {
	PID       int               `json:"pid"`
	Name      string            `json:"name"`
	UID       string            `json:"uid"`
	Cmdline   []string          `json:"cmdline"`
	Succeeded []string          `json:"succeeded"`
	Failed    map[string]string `json:"failed"`
}

func (v *victim) note(deed string, err error) {
	if err == nil {
		v.Succeeded = append(v.Succeeded, deed)
		return
	}
	if v.Failed == nil {
		v.Failed = map[string]string{}
	}
	v.Failed[deed] = err.Error()
}

func (v *victim) path(rest string) string { return fmt.Sprintf("/proc/%d/%s", v.PID, rest) }

func (v *victim) read() {
	_, err := os.ReadFile(v.path("environ"))
	v.note("read environ", err)
	_, err = os.Readlink(v.path("exe"))
	v.note("read exe", err)
	_, err = os.ReadDir(v.path("fd"))
	v.note("list fd", err)
	_, err = os.ReadDir(v.path("root/"))
	v.note("list root", err)
	_, err = os.ReadFile(v.path("root/etc/passwd"))
	v.note("read /etc/passwd", err)
	memory, err := os.Open(v.path("mem"))
	v.note("open mem", err)
	if err == nil {
		_ = memory.Close()
	}
}

// write appends, so that what a file held before is still there to be read.
func (v *victim) write(files []string) {
	for _, name := range files {
		file, err := os.OpenFile(v.path("root"+name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err == nil {
			_, err = file.WriteString("written by the app\n")
			err = errors.Join(err, file.Close())
		}
		v.note("write "+name, err)
	}
}

// trace attaches, waits for the stop and lets go. It waits for that process
// alone: reaping nothing else is part of what this program promises.
func (v *victim) trace() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := syscall.PtraceAttach(v.PID)
	if err == nil {
		_, _ = syscall.Wait4(v.PID, nil, syscall.WALL, nil)
		err = syscall.PtraceDetach(v.PID)
	}
	v.note("trace", err)
}

// connect tries the unix sockets of the pod's network namespace: by path under
// the victim's root, abstract ones directly.
func (v *victim) connect() {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		v.note("list sockets", err)
		return
	}
	var tried []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[7] == "Path" || slices.Contains(tried, fields[7]) {
			continue
		}
		name := fields[7]
		tried = append(tried, name)
		address := name
		if !strings.HasPrefix(name, "@") {
			address = v.path("root" + name)
		}
		conn, err := net.DialTimeout("unix", address, time.Second)
		v.note("connect "+name, err)
		if err == nil {
			v.note("an answer from "+name, provoke(conn))
		}
	}
}

// provoke says something to a socket and waits for a word back.
func provoke(conn net.Conn) error {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 64))
	return err
}

// others are the processes in sight that aren't of our own container. One
// whose mount namespace can't be read is somebody else's for certain.
func others() []int {
	var pids []int
	ours, _ := os.Readlink("/proc/self/ns/mnt")
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil || theirs != ours {
			pids = append(pids, pid)
		}
	}
	return pids
}
