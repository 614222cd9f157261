package upstream

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// socket is the bare connection below HTTP and below TLS. It knows how many bytes really left, and whether bytes that
// came are still to be decrypted. It is not safe for concurrent use.
type socket struct {
	net.Conn
	written int64 // bytes handed to the kernel since it was last set to 0
	raw     syscall.RawConn
	probe   func(fd uintptr) // is made once for each connection, so that a probe allocates nothing
	quiet   bool             // what the last probe has found

	// dry has Read report a timeout without asking the kernel, so that what crypto/tls has buffered already can be seen
	// without a system call.
	dry     bool
	tls     bool
	records records // of a TLS connection
}

func newSocket(raw net.Conn, encrypted bool) (*socket, error) {
	c, ok := raw.(syscall.Conn)
	if !ok {
		return nil, errors.New("open probe: not a socket")
	}
	s := &socket{Conn: raw, tls: encrypted}
	s.probe = func(fd uintptr) { s.quiet = silent(fd) }
	var err error
	s.raw, err = c.SyscallConn()
	return s, err
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.written += int64(n)
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	if s.dry {
		return 0, os.ErrDeadlineExceeded // temporary: crypto/tls does not make it stick
	}
	n, err := s.Conn.Read(p)
	if s.tls {
		s.records.follow(p[:n])
	}
	return n, err
}

// records follows the framing of TLS records (RFC 8446, section 5.1) in what was read from the socket. Bytes of an
// unfinished record are hidden inside crypto/tls, where no probe of the socket can see them.
type records struct {
	header [5]byte
	have   int // bytes of header seen
	left   int // bytes of the record's content still to come
}

func (r *records) follow(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left -= n
			p = p[n:]
			continue
		}
		n := copy(r.header[r.have:], p)
		r.have += n
		p = p[n:]
		if r.have == len(r.header) {
			r.left = int(r.header[3])<<8 | int(r.header[4])
			r.have = 0
		}
	}
}

// whole reports that no record is cut.
func (r *records) whole() bool { return r.have == 0 && r.left == 0 }

// silent reports that the socket is open and that nothing can be read from it. It does not wait, and takes nothing out
// of the socket.
func (s *socket) silent() bool {
	// Control, unlike Read, does not mind a deadline that has passed since the last exchange.
	return s.raw.Control(s.probe) == nil && s.quiet
}
