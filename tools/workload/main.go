// A workload for tests on real clusters: it behaves as its first argument says.
//
//	pause                    waits, as the pause container of every pod must
//	serve                    is ready at once
//	never-ready              runs, and is never ready
//	exit                     exits with 1 at once
//	crash-after DURATION     is ready, and exits with 1 after this time
//	leak-after DURATION      is ready, and then takes memory until it is killed
//	finish                   exits with 0 at once, as a Job does
//
// It listens on port 8080 and answers /ready with 200 or 503.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	mode := "serve"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "pause":
		pause()
	case "exit":
		fmt.Println("cannot start")
		os.Exit(1)
	case "finish":
		fmt.Println("done")
	case "serve", "never-ready":
		serve(mode == "serve")
	case "crash-after":
		go after(func() { fmt.Println("crashed"); os.Exit(1) })
		serve(true)
	case "leak-after":
		go after(leak)
		serve(true)
	default:
		fmt.Println("unknown mode:", mode)
		os.Exit(2)
	}
}

// pause reaps children until it is told to end.
func pause() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil || child <= 0 {
				break
			}
		}
	}
}

func after(what func()) {
	wait, err := time.ParseDuration(os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	time.Sleep(wait)
	what()
}

// leak touches every page that it takes, so that the memory is really used.
func leak() {
	var taken [][]byte
	for {
		block := make([]byte, 1<<20)
		for at := 0; at < len(block); at += 4096 {
			block[at] = 1
		}
		taken = append(taken, block)
		time.Sleep(time.Millisecond)
	}
}

// serve answers until it is told to end.
func serve(ready bool) {
	http.HandleFunc("/ready", func(answer http.ResponseWriter, _ *http.Request) {
		if !ready {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	go func() {
		fmt.Println(http.ListenAndServe(":8080", nil))
		os.Exit(1)
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
}
