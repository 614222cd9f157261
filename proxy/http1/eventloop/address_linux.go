package eventloop

import (
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the address at the other end.
func (s *Socket) Peer() netip.AddrPort { return s.peer }

// RemoteAddr implements net.Conn.
func (s *Socket) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.peer) }

// LocalAddr implements net.Conn: the listener's address.
func (s *Socket) LocalAddr() net.Addr { return s.here }

// SyscallConn implements syscall.Conn; its Read and Write are not to be had.
func (s *Socket) SyscallConn() (syscall.RawConn, error) { return descriptor{s}, nil }

type descriptor struct{ *Socket }

// Control implements syscall.RawConn.
func (d descriptor) Control(f func(uintptr)) error {
	if err := d.use(); err != nil {
		return err
	}
	f(uintptr(d.fd))
	d.leave(false, nil)
	return nil
}

// Read implements syscall.RawConn.
func (descriptor) Read(func(uintptr) bool) error { return syscall.EOPNOTSUPP }

// Write implements syscall.RawConn.
func (descriptor) Write(func(uintptr) bool) error { return syscall.EOPNOTSUPP }

func addressOf(from unix.Sockaddr) netip.AddrPort {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).WithZone(zone(a.ZoneId)), uint16(a.Port))
	}
	return netip.AddrPort{}
}

func zone(id uint32) string {
	if id == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return ""
}
