package ledger

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// What a middle does with the reply to a request.
const (
	passThrough = iota
	swallowFIN  // it is executed, and the connection is closed instead of an answer
	swallowRST  // it is executed, and the connection is reset
	swallow     // it is executed, and nothing comes any more
	shift       // this and every later request is answered with the reply to the one before
)

// middle is a man between a store and its Redis.
type middle struct {
	addr   string
	fate   atomic.Pointer[func(request []byte) int] // of the reply to a request
	doomed atomic.Int64                             // replies that were not passed on
}

// between starts a middle, which ends with the test.
func between(t *testing.T, server *redistest.Server) *middle {
	t.Helper()
	m := &middle{}
	m.addr = redistest.Between(t, server.Addr, func(client, server *net.TCPConn) (there, back func()) {
		var next atomic.Int64 // fate
		return func() { m.ask(server, client, &next) }, func() { m.answer(client, server, &next) }
	})
	return m
}

// dooms sets what happens to the replies to requests that have text among their arguments; n of them, and then no more.
func (m *middle) dooms(text string, fate int, n int64) {
	var left atomic.Int64
	left.Store(n)
	f := func(request []byte) int {
		if bytes.Contains(request, []byte("\r\n"+text+"\r\n")) && left.Add(-1) >= 0 {
			return fate
		}
		return passThrough
	}
	m.fate.Store(&f)
}

// ask passes requests on, and notes the fate of the replies.
func (m *middle) ask(server, client net.Conn, next *atomic.Int64) {
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if f := m.fate.Load(); f != nil {
			if fate := (*f)(buf[:n]); fate != passThrough {
				next.Store(int64(fate))
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// answer brings the replies.
func (m *middle) answer(client *net.TCPConn, server net.Conn, next *atomic.Int64) {
	buf, last := make([]byte, 1<<20), []byte(nil)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		reply := bytes.Clone(buf[:n])
		switch fate := next.Load(); fate {
		case swallowFIN, swallowRST:
			m.doomed.Add(1)
			if fate == swallowRST {
				_ = client.SetLinger(0)
			}
			return
		case swallow:
			m.doomed.Add(1)
			continue
		case shift:
			m.doomed.Add(1)
			reply, last = last, reply
		default:
			last = reply
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// through is a Redis behind m whose calls wait for at most that long.
func through(t *testing.T, m *middle, server *redistest.Server, timeout time.Duration) *Store {
	t.Helper()
	o := optionsFor(server, 2)
	o.Addresses, o.Timeout = []string{m.addr}, timeout
	o.BreakerErrors = 1_000
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	return r
}

func TestReserve_StockFallsByOneASerialWhereverTheReplyIsLost(t *testing.T) {
	for name, fate := range map[string]int{"fin": swallowFIN, "rst": swallowRST, "stall": swallow} {
		t.Run(name, func(t *testing.T) {
			server, direct := onRedis(t)
			testkit.Must[Stock](t)(direct.SetTotal(t.Context(), "1001", 50, 0))
			m := between(t, server)
			d := opened(t, testOptions(), through(t, m, server, time.Second), nil)
			wants(t, "the first", d.buy("zoe", "first"), Held)
			for _, key := range []string{"one", "two", "three"} {
				before, doomed := stockIn(t, direct).Free, m.doomed.Load()
				m.dooms(key, fate, 1)
				wants(t, "executed, not answered, asked again", d.buy("zoe", key), Held)
				testkit.Want(t, "swallowed", m.doomed.Load()-doomed, 1)
				testkit.Want(t, "free", stockIn(t, direct).Free, before-1)
				wants(t, "the client asks again", d.buy("zoe", key), ReplayHeld)
				testkit.Want(t, "free", stockIn(t, direct).Free, before-1)
			}
			testkit.Want(t, "why", stockIn(t, direct).Why, "")
		})
	}
}

func TestSettle_IsDoneOnceWhereverTheReplyIsLost(t *testing.T) {
	for name, fate := range map[string]int{"fin": swallowFIN, "rst": swallowRST, "stall": swallow} {
		t.Run(name, func(t *testing.T) {
			server, direct := onRedis(t)
			m := between(t, server)
			d := opened(t, testOptions(), through(t, m, server, 600*time.Millisecond), nil)
			before := stockIn(t, direct)
			m.dooms("confirm", fate, 2)
			d.Settle(testSKU, "a", Confirm)
			testkit.Eventually(
				t,
				"confirmed, and known so",
				func() bool { return strings.Contains(testkit.Scrape(t, d), "sluice_settle_queue_length 0\n") },
			)
			testkit.Want(t, "swallowed", m.doomed.Load(), 2)
			testkit.Want(t, "sold", stockIn(t, direct).Sold, before.Sold+1)
			testkit.Want(
				t,
				"no contradictions",
				strings.Contains(testkit.Scrape(t, d), `sluice_settle_contradictions_total{sku="_other"} 0`),
				true,
			)
		})
	}
}

func TestRedisstore_ReplyOfAnotherCallIsNeverBelievedAndClosesTheSKU(t *testing.T) {
	server, direct := onRedis(t)
	testkit.Must[Stock](t)(direct.SetTotal(t.Context(), "1001", 50, 0))
	m := between(t, server)
	r := through(t, m, server, 5*time.Second)
	testkit.Want(t, "the first", takeUnit(t, r, "first", "zoe"), Held)
	m.dooms("second", shift, 1)
	codes := []Code{Unsure}
	if _, err := r.Reserve(t.Context(), "1001", 0, 1, 1_000, []Item{{Serial: "second", User: "eve",
		Quantity: 1}}, codes); err == nil {
		t.Fatalf("another call's reply was believed: %v", codes)
	}
	m.fate.Store(nil)
	testkit.Want(t, "its own, which was executed", takeUnit(t, r, "second", "eve"), ReplayHeld)
	frozen(t, r, lostEcho)
	testkit.Want(t, "then", takeUnit(t, r, "third", "zoe"), NotOnSale)
	testkit.Must[Stock](t)(direct.SetState(t.Context(), "1001", On))
	testkit.Want(t, "opened by hand", takeUnit(t, r, "third", "zoe"), Held)
}

func TestRedisstore_HoldWithoutItsSerialIsNotBelieved(t *testing.T) {
	items := []Item{{Serial: "a"}, {Serial: "b"}}
	hint := []any{int64(3), int64(1), int64(1), "on", int64(0), int64(0), int64(1), int64(0)}
	for name, answer := range map[string][]any{
		"another's":      {"x", "b"},
		"exchanged":      {"b", "a"},
		"one of two":     {"a", "x"},
		"without a name": {"a", int64(Held)},
	} {
		if err := checkSerials(append(slices.Clone(hint), answer...), items); err == nil {
			t.Errorf("%s: believed", name)
		}
	}
	good := append(slices.Clone(hint), "a", int64(SoldOut))
	testkit.Check(t, checkSerials(good, items))
	testkit.Check(t, differ("codes", good[versionSize:], []any{int64(Held), int64(SoldOut)}))
}

func TestReply_SignatureOfAnotherCallIsRejected(t *testing.T) {
	for name, reply := range map[string][]any{
		"nothing":         nil,
		"a hint":          {int64(1), int64(1), int64(1), "on", int64(1)},
		"another number":  {"8", int64(1), int64(1), int64(0), "", nil},
		"no version":      {"7", int64(1), "", int64(0), "", nil},
		"no epoch":        {"7", "", int64(1), int64(0), "", nil},
		"no sale":         {"7", int64(1), int64(1), nil, "", nil},
		"no reason":       {"7", int64(1), int64(1), int64(0), nil, nil},
		"an odd answer":   {"7", int64(1), int64(1), int64(0), "", int64(1)},
		"a value too few": {"7", int64(1), int64(1), int64(0), ""},
	} {
		q := scriptCall{seq: 7}
		if q.readSigned(reply) == nil {
			t.Errorf("%s: %+v", name, q.answered)
		}
	}
	q := scriptCall{seq: 7}
	testkit.Check(t, q.readSigned([]any{"7", int64(2), int64(3), int64(0), "mark", []any{"x"}}))
	testkit.Want(t, "answer", len(q.answer), 1)
}
