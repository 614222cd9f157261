package e2e

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"sluice/internal/redistest"
)

// An order is answered, not sent, timed out or broken. What the client hears, how often the shop has seen it and what
// becomes of the unit follow from that alone. An answer sells the unit or gives it back, and what was not sent gives it
// back. An unknown outcome keeps it: another client hears that units may come back, and never that all are sold.
func TestOutcome_DecidesTheUnit(t *testing.T) {
	t.Parallel()
	answers := func(status string) deed {
		return func(c net.Conn, r *http.Request) bool { return says(c, reply(status, r)) }
	}
	sold, held, free := account{1, 0, 1}, account{1, 1, 0}, account{1, 0, 0}
	for name, c := range map[string]struct {
		do     deed // nil = no shop is there
		status int
		reason string
		unit   account
		next   string // what another client hears; "" = the unit is its own
	}{
		"answered 200":            {answers("200 OK"), 200, "", sold, "sold_out"},
		"answered 409":            {answers("409 Conflict"), 409, "", free, ""},
		"answered 500":            {answers("500 Internal Server Error"), 500, "", held, "undecided"},
		"not sent":                {nil, 503, "no_upstream", free, "no_upstream"},
		"timed out":               {silence, 504, "upstream_timeout", held, "undecided"},
		"broken, without a head":  {deeds["hangs up"], 502, "upstream_error", held, "undecided"},
		"broken, within the head": {deeds["half a head"], 502, "upstream_error", held, "undecided"},
		"broken, with no HTTP":    {garbage, 502, "upstream_error", held, "undecided"},
		"broken, by a reset":      {deeds["resets"], 502, "upstream_error", held, "undecided"},
		"answered 503":            {answers("503 Service Unavailable"), 503, "", held, "undecided"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, seen := nowhere(t), func(string) int { return 0 }
			if c.do != nil {
				bad := misbehave(t, func(conn net.Conn, r *http.Request) bool {
					if r.Header.Get("Serial") == "first" {
						return c.do(conn, r)
					}
					return says(conn, reply("200 OK", r))
				})
				target, seen = bad.url, bad.seen
			}
			r := redistest.Start(t)
			g := reserves(t, r, 1, "upstream.targets = "+quoted(target), `upstream.response_header_timeout = "500ms"`)
			first := g.ask("POST", orderPath, "Cookie: uid=1", "Serial: first", "Idempotency-Key: first")
			first.must(t, c.status, c.reason)
			soon(t, fmt.Sprintf("the ledger is %+v", c.unit), func() bool { return ledgerOf(t, r, "1001") == c.unit })
			if n, want := seen("first"), map[bool]int{true: 1}[c.do != nil]; n != want {
				t.Errorf("the shop saw the order %d times, want %d", n, want)
			}
			if again := first.header.Get("Retry-After") != ""; c.unit == held && again && c.reason != "" {
				t.Error("the outcome is unknown, and Retry-After invites to a second order")
			}
			if c.unit == held {
				g.ask("POST", orderPath, "Cookie: uid=1", "Serial: first", "Idempotency-Key: first").must(t, 409, "in_progress")
			}
			soon(t, "another client hears of it", func() bool {
				a := g.ask("POST", orderPath, "Cookie: uid=2", "Serial: next", "Idempotency-Key: next")
				if c.next != "undecided" && a.reason == "undecided" { // until the gate has heard what the ledger says
					return false
				}
				if a.reason != c.next {
					t.Fatalf("another client hears %d %q, want %q", a.status, a.reason, c.next)
				}
				return true
			})
			if n := seen("first"); n > 1 {
				t.Errorf("the shop saw the order %d times", n)
			}
		})
	}
}

// A unit whose outcome is unknown is held until a person says what became of it. What is final then stays final.
func TestOutcome_UnknownStaysUntilItIsDecidedOnce(t *testing.T) {
	t.Parallel()
	for op, c := range map[string]struct {
		unit   account
		later  string // what is not possible any more
		reason string // what the client of the order hears
	}{
		"confirm": {account{2, 0, 1}, "release", "confirmed"},
		"release": {account{2, 0, 0}, "confirm", "released"},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			r, shop := redistest.Start(t), misbehave(t, deeds["hangs up"])
			g := reserves(t, r, 2, "upstream.targets = "+quoted(shop.url))
			order := func() answer { return g.ask("POST", orderPath, "Cookie: uid=1", "Serial: one", "Idempotency-Key: one") }
			order().must(t, 502, "upstream_error")
			g.terminate()
			g.stopped()
			if a := ledgerOf(t, r, "1001"); a != (account{2, 1, 0}) {
				t.Errorf("after the end of the gate: %+v, want the unit held", a)
			}
			g = g.again(t)
			order().must(t, 409, "in_progress")
			for range 2 { // the same word again is no other
				ok(t, "reservation", op, "--config", g.file, "--sku", "1001", "one")
			}
			if s := run(t, "", "reservation", c.later, "--config", g.file, "--sku", "1001", "one"); s.code == 0 {
				t.Errorf("%s after %s: %s", c.later, op, s.out)
			}
			if a := ledgerOf(t, r, "1001"); a != c.unit {
				t.Errorf("ledger %+v, want %+v", a, c.unit)
			}
			if a := order(); a.reason != c.reason {
				t.Errorf("its client hears %d %q, want %q", a.status, a.reason, c.reason)
			}
			if n := shop.seen("one"); n != 1 {
				t.Errorf("the shop saw the order %d times", n)
			}
		})
	}
}
