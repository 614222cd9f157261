package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reopening opens the access log's file anew at each signal that asks for it, until it is ended. A standard output that
// nobody reads any more is not a reason to die: what is written there is lost, and counted.
func (g *gate) reopening() (end func()) {
	signal.Ignore(syscall.SIGPIPE)
	asked, stop, stopped := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(asked, rotated()...)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-asked:
				g.access.Reopen()
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(stop)
		<-stopped
	}
}
