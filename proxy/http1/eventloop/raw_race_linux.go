//go:build linux && !noeventloop && race

package eventloop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The standard library tells the race detector that what was done before a write is known to whoever has read it.

func read(fd int, p []byte) (int, error)  { return syscall.Read(fd, p) }
func write(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }

// epollWait is epoll_wait(2) with a timeout of 0.
func epollWait(epoll int, events []unix.EpollEvent) (int, error) {
	return unix.EpollWait(epoll, events, 0)
}
