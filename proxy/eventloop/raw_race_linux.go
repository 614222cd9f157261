//go:build linux && !noeventloop && race

package eventloop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// With the race detector, the system calls of the standard library order a write before the read of its bytes.

func read(fd int, p []byte) (int, error)  { return syscall.Read(fd, p) }
func write(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }

// epollWait is epoll_wait(2) with a timeout of 0.
func epollWait(epoll int, events []unix.EpollEvent) (int, error) {
	return unix.EpollWait(epoll, events, 0)
}
