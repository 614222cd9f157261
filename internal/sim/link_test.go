package sim

// Time in this file is virtual (testing/synctest).

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

var errUnreachable = errors.New("connection refused")

// network carries the connections to Redis. Each request and each reply takes some microseconds of its own, so that
// virtual time orders what happens; while faults are on, some are late, or lost with their connection.
type network struct {
	w       *world
	mu      sync.Mutex
	faults  float64 // how many requests of one have a fault
	links   map[*link]bool
	opened  uint64
	running sync.WaitGroup
}

// link is one connection of a client.
type link struct {
	n         *network
	who       string
	client    net.Conn // the far end of the client's pipe
	redis     net.Conn
	server    *redisServer
	rnd       *rand.Rand // of requests
	replies   *rand.Rand
	rest      []byte // of requests: no whole command yet
	lateReply time.Duration
	loseReply bool
	mu        sync.Mutex
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
		redis, err := s.Dial()
		if err != nil {
			return nil, err
		}
		n.opened++
		near, far := net.Pipe()
		l := &link{n: n, who: who, client: far, redis: redis, server: s,
			rnd:     rand.New(rand.NewPCG(n.w.seed, 2*n.opened)),
			replies: rand.New(rand.NewPCG(n.w.seed, 2*n.opened+1))}
		n.links[l] = true
		n.running.Go(l.requests)
		n.running.Go(l.answers)
		return near, nil
	}
}

// cut ends the connections of a client; "" = all.
func (n *network) cut(who string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		if who == "" || l.who == who {
			l.close()
		}
	}
}

func (l *link) close() {
	l.client.Close()
	l.redis.Close()
}

func latency(r *rand.Rand) time.Duration { return time.Duration(20_000 + r.IntN(200_000)) }

// requests brings to Redis what the client sends.
func (l *link) requests() {
	defer func() {
		l.close()
		l.n.mu.Lock()
		delete(l.n.links, l)
		l.n.mu.Unlock()
	}()
	room := make([]byte, 8<<10)
	for {
		n, err := l.client.Read(room)
		if err != nil {
			return
		}
		time.Sleep(latency(l.rnd))
		fault, kind := l.rnd.Float64(), l.rnd.IntN(4)
		l.n.mu.Lock()
		faulty := fault < l.n.faults
		l.n.mu.Unlock()
		switch {
		case faulty && kind == 0: // lost before it came
			return
		case faulty && kind == 1:
			l.mu.Lock()
			l.loseReply = true
			l.mu.Unlock()
		case faulty && kind == 2: // it may come after its client gave up
			time.Sleep(time.Duration(l.rnd.IntN(600)) * time.Millisecond)
		case faulty:
			l.mu.Lock()
			l.lateReply = time.Duration(l.rnd.IntN(600)) * time.Millisecond
			l.mu.Unlock()
		}
		l.server.tick()
		l.rest = l.server.note(append(l.rest, room[:n]...))
		if _, err := l.redis.Write(room[:n]); err != nil {
			return
		}
	}
}

// answers brings replies to the client, which may still send while Redis replies.
func (l *link) answers() {
	sent := make(chan []byte, 64)
	l.n.running.Go(func() { l.deliver(sent) })
	defer close(sent)
	room := make([]byte, 8<<10)
	for {
		n, err := l.redis.Read(room)
		if err != nil {
			return
		}
		sent <- bytes.Clone(room[:n])
	}
}

// deliver brings what Redis has sent to the client, some time later.
func (l *link) deliver(sent <-chan []byte) {
	defer func() {
		l.close()
		for range sent { // Redis is read to its end
		}
	}()
	for reply := range sent {
		l.mu.Lock()
		late, lose := l.lateReply, l.loseReply
		l.lateReply, l.loseReply = 0, false
		l.mu.Unlock()
		time.Sleep(late + latency(l.replies))
		if lose {
			return
		}
		if _, err := l.client.Write(reply); err != nil {
			return
		}
	}
}
