package sim

// Time in this file is virtual (testing/synctest).

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

var errUnreachable = errors.New("connection refused")

// network carries the connections to Redis. Each request and each reply takes some microseconds of its own, so that
// virtual time orders what happens; while faults are on, some are late, or lost with their connection. What becomes of a
// message is drawn by what it says, and not by when it is sent: a seed draws alike, in whatever order goroutines run.
type network struct {
	w       *world
	mu      sync.Mutex
	faults  float64 // how many requests of one have a fault
	links   map[*link]bool
	sent    map[uint64]uint64 // how often each message was sent
	running sync.WaitGroup
}

// draw is the source of what becomes of a message.
func (n *network) draw(who string, words ...string) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, who)
	for _, word := range words {
		io.WriteString(h, word[:min(len(word), 200)]) // the text of a script is long
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := h.Sum64()
	n.sent[key]++
	return rand.New(rand.NewPCG(n.w.seed<<16+n.sent[key], key))
}

// link is one connection of a client.
type link struct {
	n      *network
	who    string
	client net.Conn // the far end of the client's pipe
	server *redisServer
	peer   *server.Peer
	mu     sync.Mutex
	sent   chan reply // nil = no more; under mu
	next   reply      // what becomes of the next one; under mu
}

// reply is what Redis sends at once.
type reply struct {
	bytes []byte
	late  time.Duration
	lose  bool
}

// dialer opens the connections of one client.
func (n *network) dialer(who string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s := n.w.redis
		if s == nil || n.w.dead[who] {
			return nil, errUnreachable
		}
		near, far := net.Pipe()
		l := &link{n: n, who: who, client: far, server: s, sent: make(chan reply, 64)}
		l.peer = server.NewPeer(bufio.NewWriterSize(l, 1<<10))
		n.links[l] = true
		n.running.Go(l.requests)
		sent := l.sent
		n.running.Go(func() { l.deliver(sent) })
		return near, nil
	}
}

// cut ends the connections of a client; "" = all.
func (n *network) cut(who string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		if who == "" || l.who == who {
			l.client.Close()
		}
	}
}

func latency(r *rand.Rand) time.Duration { return time.Duration(20_000 + r.IntN(200_000)) }

// requests brings to Redis what the client sends.
func (l *link) requests() {
	defer func() {
		l.client.Close()
		l.server.leave(l.peer)
		l.n.mu.Lock()
		delete(l.n.links, l)
		l.n.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.sent)
		l.sent = nil
	}()
	var room []byte
	for in := bufio.NewReaderSize(l.client, 4<<10); ; {
		first, err := readCommand(in, &room)
		if err != nil {
			return
		}
		all := [][]string{first}
		for in.Buffered() > 0 { // a pipeline
			one, err := readCommand(in, &room)
			if err != nil {
				return
			}
			all = append(all, one)
		}
		r := l.n.draw(l.who, first...)
		time.Sleep(latency(r))
		fault, kind := r.Float64(), r.IntN(4)
		l.n.mu.Lock()
		faulty := fault < l.n.faults
		l.n.mu.Unlock()
		next := reply{late: latency(r)}
		switch {
		case faulty && kind == 0: // lost before it came
			return
		case faulty && kind == 1:
			next.lose = true
		case faulty && kind == 2: // it may come after its client gave up
			time.Sleep(time.Duration(r.IntN(600_000_000)))
		case faulty:
			next.late += time.Duration(r.IntN(600_000_000))
		}
		l.mu.Lock()
		l.next = next
		l.mu.Unlock()
		for _, args := range all {
			if !l.server.do(l.who, l.peer, args) {
				return
			}
		}
		l.peer.Flush()
	}
}

// Write takes what Redis sends: an answer, or news.
func (l *link) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		return 0, net.ErrClosed
	}
	next := l.next
	l.next = reply{}
	if next.late == 0 {
		next.late = latency(l.n.draw(l.who, string(p)))
	}
	next.bytes = bytes.Clone(p)
	l.sent <- next
	return len(p), nil
}

// deliver brings what Redis has sent to the client, some time later.
func (l *link) deliver(sent <-chan reply) {
	defer func() {
		l.client.Close()
		for range sent { // Redis is read to its end
		}
	}()
	for r := range sent {
		time.Sleep(r.late)
		if r.lose {
			return
		}
		if _, err := l.client.Write(r.bytes); err != nil {
			return
		}
	}
}
