package ledger

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"sluice/internal/testkit"
)

// lossy stands between a client and a Redis, and cuts the connection of one script call in a few: before Redis has
// heard of it, or after Redis has run it and before the client hears so, with a FIN or a RST. Which one, the seed and
// the schedule decide.
type lossy struct {
	Addr string

	to       string
	listener net.Listener
	all      sync.WaitGroup

	mu       sync.Mutex
	dice     *rand.Rand
	oneIn    int
	requests int // lost
	replies  int // lost
	open     map[net.Conn]bool
}

// lossyTo returns a lossy way to a Redis that ends with the test.
func lossyTo(t testing.TB, to string, seed uint64, oneIn int) *lossy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	p := &lossy{Addr: listener.Addr().String(), to: to, listener: listener, oneIn: oneIn,
		dice: rand.New(rand.NewPCG(seed, 4)), open: make(map[net.Conn]bool)}
	p.all.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *lossy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.oneIn = 0
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.all.Wait()
}

func (p *lossy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			continue
		}
		if !p.begin(client, server) {
			return
		}
		c := &passage{lossy: p, client: client, server: server}
		p.all.Go(c.carryRequests)
		p.all.Go(c.carryReplies)
	}
}

// begin keeps both ends, unless it is over.
func (p *lossy) begin(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		client.Close()
		server.Close()
		return false
	}
	p.open[client], p.open[server] = true, true
	return true
}

// lost is how many messages were lost.
func (p *lossy) lost() (requests, replies int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, p.replies
}

type fate int

const (
	arrives fate = iota
	losesRequest
	losesReply
)

// decide throws the dice for a script call.
func (p *lossy) decide() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.oneIn == 0 || p.dice.IntN(p.oneIn) > 0 {
		return arrives
	}
	if p.dice.IntN(3) == 0 {
		p.requests++
		return losesRequest
	}
	p.replies++
	return losesReply
}

func (p *lossy) heads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dice.IntN(2) == 0
}

// passage is one connection through it.
type passage struct {
	*lossy
	client, server net.Conn

	mu   sync.Mutex
	cuts bool // the next reply is lost
}

// carryRequests takes them to the server.
func (w *passage) carryRequests() {
	defer w.cut()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("\r\nevalsha\r\n")) {
			switch w.decide() {
			case losesRequest:
				return
			case losesReply:
				w.mu.Lock()
				w.cuts = true
				w.mu.Unlock()
			}
		}
		if _, err := w.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// carryReplies takes them to the client.
func (w *passage) carryReplies() {
	defer w.cut()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.server.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		cuts := w.cuts
		w.mu.Unlock()
		if cuts {
			if w.heads() {
				_ = w.client.(*net.TCPConn).SetLinger(0)
			}
			return
		}
		if _, err := w.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *passage) cut() {
	w.client.Close()
	w.server.Close()
	w.lossy.mu.Lock()
	defer w.lossy.mu.Unlock()
	delete(w.open, w.client)
	delete(w.open, w.server)
}
