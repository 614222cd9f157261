package script

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// compiled is the script of d.
func compiled(t testing.TB, d Definition) *Script {
	t.Helper()
	s, faults := Compile(d)
	for _, f := range faults {
		t.Fatal(f)
	}
	return s
}

// reserver returns one on the Redis at addr that is closed with the test. Its timeouts suit a busy machine.
func reserver(t testing.TB, addr string, d Definition, change ...func(*Options)) *Reserver {
	t.Helper()
	o := Options{Script: compiled(t, d), MaxWait: time.Minute, Redis: redisconn.Options{
		Addresses: []string{addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: 1000, BreakerPause: 50 * time.Millisecond,
	}}
	for _, c := range change {
		c(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(t.Context()) })
	return r
}

// take asks for one order and returns its reason and serial.
func take(r *Reserver, sku, user, key string, units int64) (reject.Reason, string) {
	out := r.Reserve(r.o.Now(), proxy.Order{SKU: []byte(sku), User: []byte(user), Key: []byte(key), Quantity: units})
	return out.Reason, out.Serial
}

// takeOne runs the script for one order, without a queue.
func takeOne(r *Reserver, o *order) *order {
	r.script.runTake(background, r.way, []*order{o})
	return o
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire stands between a Reserver and Redis, and breaks what passes.
type wire struct {
	addr  string
	to    string
	ear   net.Listener
	cut   atomic.Pointer[string]       // the answer to the next command with this word is lost, and its connection
	seen  atomic.Pointer[func(string)] // hears every command before Redis does
	mu    sync.Mutex
	open  map[net.Conn]struct{}
	down  bool
	ended sync.WaitGroup
}

func between(t testing.TB, to string) *wire {
	t.Helper()
	ear := testkit.Listen(t, testkit.FreeAddress(t)) // plug takes it again
	w := &wire{addr: ear.Addr().String(), to: to, open: make(map[net.Conn]struct{})}
	w.listen(ear)
	t.Cleanup(func() {
		w.unplug()
		w.ended.Wait()
	})
	return w
}

func (w *wire) listen(ear net.Listener) {
	w.ear = ear
	w.ended.Go(func() {
		for {
			c, err := ear.Accept()
			if err != nil {
				return
			}
			w.ended.Go(func() { w.pass(c) })
		}
	})
}

// lose lets the answer to the next command that has word be lost.
func (w *wire) lose(word string) { w.cut.Store(&word) }

// unplug ends all connections and lets no further one be.
func (w *wire) unplug() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	w.ear.Close()
	for c := range w.open {
		c.Close()
	}
}

// plug ends unplug.
func (w *wire) plug(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
	w.listen(testkit.Listen(t, w.addr))
}

// keep notes c, or closes it when the wire is unplugged.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		c.Close()
		return false
	}
	w.open[c] = struct{}{}
	return true
}

func (w *wire) drop(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
	c.Close()
}

func (w *wire) pass(in net.Conn) {
	if !w.keep(in) {
		return
	}
	defer w.drop(in)
	out, err := net.Dial("tcp", w.to)
	if err != nil || !w.keep(out) {
		return
	}
	defer w.drop(out)
	var deaf atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := out.Read(buf)
			if err != nil || deaf.Load() { // Redis has done it, and the reply is lost
				in.Close()
				return
			}
			if _, err := in.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	defer back.Wait()
	defer out.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		w.hear(buf[:n], &deaf)
		if _, err := io.Copy(out, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}

// hear looks for the word of lose.
func (w *wire) hear(text []byte, deaf *atomic.Bool) {
	lower := strings.ToLower(string(text))
	if seen := w.seen.Load(); seen != nil {
		(*seen)(lower)
	}
	if word := w.cut.Load(); word != nil && strings.Contains(lower, "\r\n"+*word+"\r\n") && w.cut.CompareAndSwap(word,
		nil) {
		deaf.Store(true)
	}
}

// learnt lets Redis know all presets, so that the first run of one is the one that counts.
func learnt(t testing.TB, r *redistest.Server) {
	t.Helper()
	for _, s := range shops() {
		for _, text := range compiled(t, s.def).Texts() {
			check(t, r.Client.ScriptLoad(background, text).Err())
		}
	}
}

// number reads a whole number out of Redis.
func number(t testing.TB, n int64, err error) int64 {
	t.Helper()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return n
}

// sum counts the units of all SKUs of which something became.
func (c *counts) sum(e unitEvent) uint64 { return sumOf(c.units, e.String()) }

// ended counts the orders of all SKUs that ended in one way.
func (c *counts) ended(in outcome) uint64 { return sumOf(c.orders, in.String()) }

// sumOf adds up what has a value of a label.
func sumOf(of prometheus.Collector, label string) (n uint64) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(of)
	families, _ := registry.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, pair := range m.GetLabel() {
				if pair.GetValue() == label {
					n += uint64(m.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}
