// Command pause keeps the namespaces of a pod open until it receives SIGINT or SIGTERM.
// It reaps orphaned processes of a pod that shares its process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGINT, syscall.SIGTERM)
	childExited := make(chan os.Signal, 1)
	signal.Notify(childExited, syscall.SIGCHLD)
	for {
		select {
		case <-terminate:
			return
		case <-childExited:
			reap()
		}
	}
}

// reap collects the exit status of every child that has exited.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 {
			return
		}
	}
}
