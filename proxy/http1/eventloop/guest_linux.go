package eventloop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A guest is the connection of somebody else, who reads, writes and closes it by other means, and to whom the loop tells, while it
// rests, that something has come. So a request that a loop has served can wait there for its answer: no goroutine waits.

// Guest has the loop of s wait for another connection, too, until Leave. It does not rest yet.
func (s *Socket) Guest(c syscall.RawConn) (*Socket, error) {
	g := &Socket{loop: s.loop, held: true, guest: true}
	var fault error
	err := c.Control(func(fd uintptr) {
		g.fd = int(fd)
		fault = g.loop.hold(g)
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Hush forgets what has happened to a guest so far. Its owner looks himself, before the rest that follows.
func (s *Socket) Hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.news, s.ended = false, false
}

// Leave ends what Guest began. It comes before the guest is closed: then its descriptor is another's.
func (s *Socket) Leave() { s.loop.drop(s) }

// Follow has s served by whoever serves the guest g, as far as stepping aside goes.
func (s *Socket) Follow(g *Socket) { s.turn, g.turn = g.turn, Turn{} }

// wanted are the events of a connection.
func (s *Socket) wanted() uint32 {
	if s.guest {
		return unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	}
	return unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
}

// stranded reports a guest whose loop is closed: nobody would tell it anything. mu is held, so that release finds whoever rests all the same.
func (s *Socket) stranded() bool { return s.guest && s.loop.loops.over.Load() }

// release ends the rests of all guests of a loop that is closed, also of those who have been woken and served by nobody.
func (l *Loop) release() {
	l.mu.Lock()
	var left []*Socket
	for _, s := range l.sockets {
		if s != nil && s.guest && s.Reclaim() {
			left = append(left, s)
		}
	}
	for _, s := range l.came {
		if s.guest {
			left = append(left, s)
		}
	}
	l.came = nil
	l.mu.Unlock()
	for _, s := range left {
		l.Expire(s)
	}
}
