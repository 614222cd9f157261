package eventloop

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener takes connections into loops.
type Listener struct {
	loops   *Loops
	address net.Addr
	file    *os.File
	raw     syscall.RawConn
	closed  atomic.Bool
}

// Listen has connections of ln taken into the loops. It closes ln: the Listener is what remains of it.
func (ls *Loops) Listen(ln *net.TCPListener) (*Listener, error) {
	file, err := ln.File() // a descriptor that can be waited for and taken from, which ln does not allow
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = prepare(raw)
	}
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails where Go's poller does not know it
	}
	if err == nil {
		err = ln.Close()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Listener{loops: ls, address: ln.Addr(), file: file, raw: raw}, nil
}

// prepare gives a listener the options that Go gives each connection; on Linux they are inherited (tcp(7)).
func prepare(raw syscall.RawConn) error {
	var fault error
	err := raw.Control(func(fd uintptr) {
		for _, o := range [][3]int{{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9}} {
			if fault = unix.SetsockoptInt(int(fd), o[0], o[1], o[2]); fault != nil {
				return
			}
		}
	})
	if err == nil {
		err = os.NewSyscallError("setsockopt", fault)
	}
	return err
}

// Accept implements net.Listener: with a *Socket, which does not rest yet.
func (l *Listener) Accept() (net.Conn, error) {
	var fd int
	var from unix.Sockaddr
	var fault error
	err := l.raw.Read(func(listener uintptr) bool {
		for {
			fd, from, fault = unix.Accept4(int(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if fault != unix.EINTR {
				return fault != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil && l.closed.Load():
		err = net.ErrClosed
	case err == nil && fault != nil:
		err = &net.OpError{Op: "accept", Net: "tcp", Addr: l.address, Err: os.NewSyscallError("accept4", fault)}
	}
	if err != nil {
		return nil, err
	}
	return l.loops.socket(fd, addressOf(from), l.address), nil
}

// SetDeadline ends what waits in Accept.
func (l *Listener) SetDeadline(t time.Time) error { return l.file.SetReadDeadline(t) }

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.file.Close()
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.address }
