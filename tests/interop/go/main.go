// What Apache's Go client can do with us, feature by feature.
//
// Started by run.py, which says there how the two talk; the names of the features are those of the
// other clients' programs.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const timePerFeature = 120 * time.Second

// A feature is shown in a world of its own; it fails by panicking.
type feature struct {
	name     string
	show     func(*world)
	restarts bool // it has the server restarted
}

var options struct {
	url, webURL, only           string
	tlsURL, tlsWebURL, tlsTrust string
	unackedLimit                int
	restarts, list, debug       bool
}

var answers = bufio.NewReader(os.Stdin)

// restart is kill -9, and the server is ready again when it returns.
func restart() {
	fmt.Println("? restart")
	answer, err := answers.ReadString('\n')
	must(err)
	check(strings.TrimSpace(answer) == "done", "the driver answers %q", answer)
}

func main() {
	flag.StringVar(&options.url, "url", "", "")
	flag.StringVar(&options.webURL, "web-url", "", "")
	flag.StringVar(&options.tlsURL, "tls-url", "", "")
	flag.StringVar(&options.tlsWebURL, "tls-web-url", "", "")
	flag.StringVar(&options.tlsTrust, "tls-trust", "", "a certificate")
	flag.StringVar(&options.only, "only", "", "features whose name holds this")
	flag.IntVar(&options.unackedLimit, "unacked-limit", 0, "")
	flag.BoolVar(&options.restarts, "restarts", false, "the server may be restarted")
	flag.BoolVar(&options.list, "list", false, "")
	flag.BoolVar(&options.debug, "debug", false, "the client logs what it does")
	flag.Parse()
	for _, group := range [][]feature{producing, consuming, acknowledging, redelivering, reading, topics} {
		for _, f := range group {
			if !strings.Contains(f.name, options.only) || f.restarts && !options.restarts {
				continue
			}
			if options.list {
				fmt.Println(f.name)
			} else {
				fmt.Println(result(f))
			}
		}
	}
}

// result runs a feature, and leaves it behind if it does not end.
func result(f feature) string {
	failed := make(chan string, 1)
	go func() {
		defer func() {
			if reason := recover(); reason != nil {
				failed <- strings.Join(strings.Fields(fmt.Sprintf("%v at %s", reason, ours())), " ")
			}
		}()
		w := newWorld(f.name)
		defer w.close()
		f.show(w)
		failed <- ""
	}()
	select {
	case reason := <-failed:
		if reason == "" {
			return "ok " + f.name
		}
		return "FAIL " + f.name + " " + reason
	case <-time.After(timePerFeature):
		stacks := make([]byte, 1<<20)
		os.Stderr.Write(stacks[:runtime.Stack(stacks, true)])
		return fmt.Sprintf("FAIL %s no end within %v", f.name, timePerFeature)
	}
}

// ours is where a feature has failed, by the lines of its own file.
func ours() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		file := filepath.Base(frame.File)
		if strings.HasPrefix(frame.Function, "main.") && file != "main.go" && file != "world.go" {
			return fmt.Sprintf("%s:%d", file, frame.Line)
		}
		if !more {
			return "?"
		}
	}
}
