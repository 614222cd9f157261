//go:build linux && !noeventloop

package eventloop

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listener accepts connections into a group.
type listener struct {
	group   *Group
	address net.Addr
	file    *os.File
	raw     syscall.RawConn
	closed  atomic.Bool
}

// Listen returns a listener whose Accept returns connections of the group, of type *Conn. They do not wait yet.
// Listen closes ln, unless it returns an error. The result has a method SetDeadline(time.Time) error, which
// ends Accept.
func (g *Group) Listen(ln *net.TCPListener) (net.Listener, error) {
	file, err := ln.File() // ln itself does not allow a custom accept
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = setConnOptions(raw)
	}
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails if Go's network poller does not support it
	}
	if err == nil {
		err = ln.Close()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &listener{group: g, address: ln.Addr(), file: file, raw: raw}, nil
}

// setConnOptions sets the options on a listener that Go sets on each connection; connections inherit them (tcp(7)).
func setConnOptions(raw syscall.RawConn) error {
	var fault error
	err := raw.Control(func(fd uintptr) {
		for _, o := range [][3]int{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
		} {
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

// Accept implements net.Listener. The result is a *Conn.
func (l *listener) Accept() (net.Conn, error) {
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
	return l.group.newConn(fd, l.address, tcpAddr(from)), nil
}

// SyscallConn implements syscall.Conn.
func (l *listener) SyscallConn() (syscall.RawConn, error) { return l.raw, nil }

// SetDeadline ends an Accept that blocks at t.
func (l *listener) SetDeadline(t time.Time) error { return l.file.SetReadDeadline(t) }

// Close implements net.Listener.
func (l *listener) Close() error {
	l.closed.Store(true)
	return l.file.Close()
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

func tcpAddr(from unix.Sockaddr) net.Addr {
	var a netip.AddrPort
	switch s := from.(type) {
	case *unix.SockaddrInet4:
		a = netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		a = netip.AddrPortFrom(netip.AddrFrom16(s.Addr).WithZone(zoneName(s.ZoneId)), uint16(s.Port))
	}
	return net.TCPAddrFromAddrPort(a)
}

func zoneName(id uint32) string {
	if id == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return ""
}
