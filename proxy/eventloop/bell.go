//go:build linux && !noeventloop

package eventloop

import (
	"os"

	"golang.org/x/sys/unix"
)

// bell is an eventfd in a loop's epoll: it wakes the leader for what no connection's event tells.
type bell struct{ fd int }

func openBell(epoll int) (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return &bell{fd}, nil
}

// ring makes epoll report an event. Its counter never has to be read: every write is one.
func (b *bell) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(b.fd, one[:])
}

func (b *bell) close() { _ = unix.Close(b.fd) }
