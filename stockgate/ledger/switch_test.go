package ledger

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// exchange is an address behind which a test puts now this Redis, now that, as a fail-over does.
type exchange struct {
	Addr     string
	listener net.Listener
	all      sync.WaitGroup

	mu   sync.Mutex
	to   string
	open map[net.Conn]bool
}

func exchangeTo(t testing.TB, to *redistest.Server) *exchange {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	x := &exchange{Addr: listener.Addr().String(), listener: listener, to: to.Addr, open: make(map[net.Conn]bool)}
	x.all.Go(x.accept)
	t.Cleanup(func() {
		listener.Close()
		x.turn("")
		x.all.Wait()
	})
	return x
}

// turn leads all connections to come somewhere else, and cuts those that are open.
func (x *exchange) turn(to string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.to = to
	for c := range x.open {
		c.Close()
	}
	clear(x.open)
}

func (x *exchange) accept() {
	for {
		client, err := x.listener.Accept()
		if err != nil {
			return
		}
		if server := x.connect(client); server != nil {
			x.all.Go(func() { carryOver(client, server) })
			x.all.Go(func() { carryOver(server, client) })
		}
	}
}

func (x *exchange) connect(client net.Conn) net.Conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	server, err := net.Dial("tcp", x.to)
	if err != nil {
		client.Close()
		return nil
	}
	x.open[client], x.open[server] = true, true
	return server
}

func carryOver(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	from.Close()
	to.Close()
}

// pair is a master with one replica, and the address under which instances know the master.
type pair struct {
	t               *testing.T
	master, replica *redistest.Server
}

func newPair(t *testing.T) *pair {
	t.Helper()
	at := []string{"--repl-diskless-sync-delay", "0"}
	p := &pair{t: t, master: redistest.Start(t, at...), replica: redistest.Start(t, at...)}
	p.follow()
	return p
}

// follow has the replica copy the master.
func (p *pair) follow() {
	p.t.Helper()
	host, port, _ := net.SplitHostPort(p.master.Addr)
	testkit.Check(p.t, p.replica.Client.Do(p.t.Context(), "replicaof", host, port).Err())
	testkit.Eventually(p.t, "the replica follows", func() bool {
		return p.replica.Client.InfoMap(p.t.Context(), "replication").Val()["Replication"]["master_link_status"] == "up"
	})
}

// failOver makes the replica the master, to which x leads from now on, and the master its replica.
func (p *pair) failOver(x *exchange) {
	p.t.Helper()
	p.cut()
	x.turn(p.replica.Addr)
	p.master, p.replica = p.replica, p.master
	p.follow()
}

// cut ends the replication: what is written from now on is lost when the replica takes over. What was written before
// is not.
func (p *pair) cut() {
	p.t.Helper()
	conn := p.master.Client.Conn() // WAIT is about the writes of one connection, and all that came before them
	defer conn.Close()
	testkit.Check(p.t, conn.Incr(p.t.Context(), "nonsense").Err())
	testkit.Eventually(p.t, "the replica has all", func() bool {
		return conn.Wait(p.t.Context(), 1, time.Second).Val() == 1
	})
	testkit.Check(p.t, p.replica.Client.Do(p.t.Context(), "replicaof", "no", "one").Err())
}

// through returns a Redis by way of x. A frozen SKU opens as soon as all have told.
func (p *pair) through(x *exchange) *Store {
	p.t.Helper()
	o := optionsFor(p.master, 4)
	o.Addresses = []string{x.Addr}
	r := testkit.Must[*Store](p.t)(open(o, compile(texts())))
	r.Settle = 0
	p.t.Cleanup(func() { r.Close() })
	return r
}
