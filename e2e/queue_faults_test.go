package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The user is a cookie that any client can write: it does not tell whose order waits.
func TestDelivery_ProofIsToldAgainForTheKeyAlone(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	address := testkit.FreeAddress(t) // no shop is there: orders wait
	g := gate(t, redisAt(r), boundless, shop.patient("http://"+address), waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	buy := func(fields ...string) waiting {
		return g.call(t, "POST", orderPath, "", append(fields, "Accept", "application/json")...)
	}
	hasProof := func(w waiting) bool {
		return strings.Contains(w.text+fmt.Sprint(w.header), "proof=")
	}
	for what, first := range map[string][]string{
		"an order without a key": {"Cookie", "uid=ann"},
		"an order with a key":    {"Cookie", "uid=bob", "Idempotency-Key", "key-bob"},
	} {
		told := buy(first...)
		if told.status != 202 || !hasProof(told) {
			t.Fatalf("%s: %+v", what, told)
		}
		for _, other := range [][]string{{first[0], first[1]}, {first[0], first[1], "Idempotency-Key", "another"}} {
			w := buy(other...)
			if w.status == 202 || hasProof(w) || first[len(first)-1] == "key-bob" && strings.Contains(w.text, "key-bob") {
				t.Errorf("%s: another client that writes %q hears %+v", what, other, w)
			}
		}
		if again := buy(first...); hasProof(again) != (len(first) == 4) || again.status != 409 {
			t.Errorf("%s, sent again: %+v", what, again)
		}
		// The serial of an order without a key is told with its state: it is no key.
		if w := buy(first[0], first[1], "Idempotency-Key", told.Serial); hasProof(w) != (len(first) == 4) {
			t.Errorf("%s, by its serial: %+v", what, w)
		}
	}
}

// Cookies wait with an order, and fill Redis as its body does.
func TestDelivery_MaxOrderBoundsTheWholeRequest(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	g := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL), waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	large := strings.Repeat("x", 10<<10)
	for what, c := range map[string]struct {
		cookie, body string
		status       int
	}{
		"a body":                  {"uid=ann", large, 202},
		"a cookie":                {"uid=bob; more=" + large, "", 202},
		"both":                    {"uid=eve; more=" + large, large, 413},
		"a cookie alone":          {"uid=max; more=" + large + large, "", 413},
		"a body that is too much": {"uid=zoe", large + large, 413},
	} {
		w := g.call(t, "POST", orderPath, c.body, "Cookie", c.cookie, "Content-Type", "text/plain")
		if w.status != c.status {
			t.Errorf("%s: %+.300v, want %d", what, w, c.status)
		}
	}
	g.wantMetric(3, "sluice_rejected_requests_total", `reason="too_large"`)
	old := file(t, g.change("queue.grace = ", "queue.max_body = \"16KiB\"\nqueue.grace = "))
	s := run(t, "", "check", old)
	if s.code == 0 || !strings.Contains(s.out+s.complaint, "queue.max_body: is now max_order") {
		t.Errorf("check of the old key: exit code %d: %s%s", s.code, s.out, s.complaint)
	}
	wants(t, ok(t, "check", "-v", g.file), "1000 units take at most 16000KiB of Redis")
}

// Redis' clock runs a day ahead for a moment, in which the shop asks for a pause. When it is right again the pause is
// as long as the shop asked for.
func TestDelivery_GoesOnAfterRedisClockWasADayAhead(t *testing.T) {
	t.Parallel()
	r, turn := redistest.StartWithClock(t)
	shop := openLameShop(t)
	var busy atomic.Bool
	var asked atomic.Int64
	shop.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if !busy.Load() {
			return true
		}
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return false
	}
	g := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL), "queue.rate = 50", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "9")
	order := func(user int) {
		if w := g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", user)); w.status != 202 {
			t.Fatalf("order of %d: %+v", user, w)
		}
	}
	ahead := func(by time.Duration) {
		turn(by)
		testkit.Eventually(t, "Redis' clock has jumped", func() bool {
			off := time.Until(r.Client.Time(t.Context()).Val()) - by
			return off > -time.Minute && off < time.Minute
		})
	}
	order(0)
	testkit.Eventually(t, "an order is made", func() bool { return shop.orders() == 1 })
	ahead(24 * time.Hour)
	busy.Store(true)
	order(1)
	testkit.Eventually(t, "the shop asks for a pause", func() bool { return asked.Load() > 0 })
	ahead(0)
	busy.Store(false)
	order(2)
	testkit.Eventually(t, "an order is made", func() bool { return shop.orders() == 2 })
}

func TestDelivery_ReadyzNamesOrdersThatWaitForNothing(t *testing.T) {
	testkit.Nightly(t, "a pause may last a minute before it is too long")
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	g := gate(t, redisAt(r), boundless, shop.settings(shop.server.URL), waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "9")
	pause := func() bool { // as if another instance asked for one again and again
		now := r.Client.Time(t.Context()).Val().UnixMilli()
		const slots = "sluice:shop:{slots of all queues}:s"
		return r.Client.HSet(t.Context(), slots, "pause", now+60_000, "lasts", 60_000).Err() == nil
	}
	pause()
	if w := g.call(t, "POST", orderPath, "", "Cookie", "uid=1"); w.status != 202 {
		t.Fatalf("%+v", w)
	}
	said := "degraded; queue: orders wait, nothing is granted for "
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(time.Second) { // the pace of the pauses
		if _, text := g.peek("/readyz"); pause() && strings.HasPrefix(text, said) {
			return
		}
	}
	_, text := g.peek("/readyz")
	t.Errorf("/readyz says %q", text)
}
