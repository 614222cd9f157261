package sim

// Time in this file is virtual (testing/synctest).

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

var (
	errUnreachable = errors.New("connection refused")
	errLost        = errors.New("lost before it came")
)

// network carries the connections to Redis. Each request and each reply takes some microseconds of its own, so that
// virtual time orders what happens; while faults are on, some are late, or lost with their connection. What becomes of
// a message is drawn by what it says, and not by when it is sent: a seed draws alike, in whatever order goroutines run.
type network struct {
	w       *world
	mu      sync.Mutex
	faults  float64 // how many requests of one have a fault
	links   map[*link]bool
	apart   map[string]int       // instances that are cut off, by how many faults
	joined  map[string]time.Time // since then they are not any more
	opened  int
	sent    map[uint64]uint64 // how often each message was sent
	running sync.WaitGroup
}

// draw is the source of what becomes of a message. Its words may be in any order: some come out of a map.
func (n *network) draw(who string, words ...string) *rand.Rand {
	key := fingerprint(who)
	for _, word := range words {
		key += fingerprint(word)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent[key]++
	return rand.New(rand.NewPCG(n.w.seed<<16+n.sent[key], key))
}

func fingerprint(text string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, text)
	return h.Sum64()
}

// link is one connection of a client.
type link struct {
	n      *network
	who    string
	number int      // of the connections that were opened
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

// maxUnread is how many KiB of replies a client may leave unread: Redis closes its connection then.
const maxUnread = 1 << 10

var errUnread = errors.New("the client's output buffer is full")

// dialer opens the connections of one client.
func (n *network) dialer(who string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s := n.w.redis
		if s == nil || n.w.dead[who] || n.apart[host(who)] > 0 {
			return nil, errUnreachable
		}
		near, far := net.Pipe()
		n.opened++
		l := &link{n: n, who: who, number: n.opened, client: far, server: s, sent: make(chan reply, maxUnread)}
		l.peer = server.NewPeer(bufio.NewWriterSize(l, 1<<10))
		n.links[l] = true
		n.running.Go(l.requests)
		sent := l.sent
		n.running.Go(func() { l.deliver(sent) })
		return near, nil
	}
}

// host is the name of an instance without the number of its start.
func host(who string) string {
	name, _, _ := strings.Cut(who, ".")
	return name
}

// part cuts an instance off from Redis, and an instance that is started in its place, until it is joined.
func (n *network) part(g *gateway) {
	n.mu.Lock()
	n.apart[host(g.name)]++
	n.mu.Unlock()
	n.cut(g.name)
}

func (n *network) join(g *gateway) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apart[host(g.name)]--
	n.joined[host(g.name)] = time.Now()
}

// isBack reports whether an instance has been cut off, and for less than d is not any more. Where Redis loses all that
// it got since, no mark tells of such an instance, and its orders are missing if it has ended: see docs/ledger.md.
func (n *network) isBack(g *gateway, d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok := n.joined[host(g.name)]
	return ok && time.Since(at) < d
}

// cut ends the connections of a client, one after another; "" = all.
func (n *network) cut(who string) {
	n.mu.Lock()
	var all []*link
	for l := range n.links {
		if who == "" || l.who == who {
			all = append(all, l)
		}
	}
	n.mu.Unlock()
	slices.SortFunc(all, func(a, b *link) int { return cmp.Compare(a.number, b.number) })
	for _, l := range all {
		l.client.Close()
		time.Sleep(time.Microsecond)
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
		first, err := scripts.ReadCommand(in, &room)
		if err != nil {
			return
		}
		all := [][]string{first}
		for in.Buffered() > 0 { // a pipeline
			one, err := scripts.ReadCommand(in, &room)
			if err != nil {
				return
			}
			all = append(all, one)
		}
		next := reply{late: -1}
		if !loads(first) { // scripts come in pieces, in any order
			if next, err = l.arrive(first); err != nil {
				return
			}
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

// arrive lets time pass until a request is there, and says what becomes of its answer.
func (l *link) arrive(first []string) (next reply, err error) {
	r := l.n.draw(l.who, first...)
	time.Sleep(latency(r))
	fault, kind := r.Float64(), r.IntN(4)
	l.n.mu.Lock()
	faulty := fault < l.n.faults
	l.n.mu.Unlock()
	next.late = latency(r)
	switch {
	case faulty && kind == 0:
		return next, errLost
	case faulty && kind == 1:
		next.lose = true
	case faulty && kind == 2: // it may come after its client gave up
		time.Sleep(time.Duration(r.IntN(600_000_000)))
	case faulty:
		next.late += time.Duration(r.IntN(600_000_000))
	}
	return next, nil
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
	select { // it runs under the lock of scripts, where no time passes
	case l.sent <- next:
		return len(p), nil
	default:
		l.client.Close()
		return 0, errUnread
	}
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
