// zooapp is the program that is debugged in the zoo's pods: a small web server
// whose replies change from one to the next and that tells what was done to
// it. It is static and knows no other program; it never waits for a child, so
// it reaps nothing that is handed to it as PID 1, as real applications do.
//
//	GET /         "request N of HOST", N counts up
//	GET /pid /ids /signals    about itself (about.go, signals.go)
//	GET /attack   with -hostile only (attack.go)
//
// Its own image has no shell: get, ps, cat, ids and sleep are there for
// `kubectl exec POD -- /zooapp ...` (tools.go).
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// requests counts the replies so far. In gdb, `print 'main.requests'` (with the
// quotes) sees it change, and `break main.reply` stops in each request.
var (
	requests uint64
	counting sync.Mutex
)

//go:noinline
func reply(number uint64, host string) string {
	text := fmt.Sprintf("request %d of %s\n", number, host)
	return text
}

func root(w http.ResponseWriter, _ *http.Request) {
	counting.Lock()
	requests++
	number := requests
	counting.Unlock()
	host, _ := os.Hostname()
	_, _ = fmt.Fprint(w, reply(number, host))
}

func main() {
	if len(os.Args) > 1 {
		if tool, ok := tools[os.Args[1]]; ok {
			os.Exit(tool(os.Args[2:]))
		}
	}
	port := flag.Int("port", 8080, "port to serve on")
	crash := flag.Int("crash", 0, "say so and exit with this code")
	hang := flag.Bool("hang", false, "serve nothing, never end")
	hostile := flag.Bool("hostile", false, "take a misleading name and serve /attack")
	flag.Parse()

	countSignals()
	switch {
	case *crash != 0:
		fmt.Printf("cannot open the ledger: exiting with %d\n", *crash)
		time.Sleep(300 * time.Millisecond)
		os.Exit(*crash)
	case *hang:
		fmt.Println("waiting for something that never comes")
		select {}
	}
	if *hostile {
		disguise()
		http.HandleFunc("GET /attack", attack)
	}
	http.HandleFunc("GET /", root)
	http.HandleFunc("GET /pid", servePID)
	http.HandleFunc("GET /ids", serveIDs)
	http.HandleFunc("GET /signals", serveSignals)
	fmt.Println("listening on", *port)
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":"+strconv.Itoa(*port), nil))
	os.Exit(1)
}
