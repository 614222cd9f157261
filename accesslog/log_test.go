package accesslog

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// page is an output that is read while it is written.
type page struct{ testkit.Log }

func (p *page) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(p.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q is no JSON: %v", text, err)
		}
		all = append(all, line)
	}
	return all
}

// logTo makes a Log that has not begun to write.
func logTo(t testing.TB, to io.Writer, set func(*Options)) *Log {
	t.Helper()
	o := Options{
		Settings: Settings{Output: "stdout", RejectedFirst: 2, RejectedEvery: 10, Remember: 1 << 20},
		Stdout:   to, Now: func() int64 { return 0 }, Secret: []byte("a secret of all instances"),
		Log: slog.New(slog.DiscardHandler),
	}
	if set != nil {
		set(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// set puts s into force.
func set(l *Log, s Settings) error {
	use, _, err := l.Prepare(s)
	if err == nil {
		use()
	}
	return err
}

func none() Totals { return Totals{} }

// testRecord is a request of user 7 for 1001.
func testRecord(reason reject.Reason) metrics.AccessRecord {
	return metrics.AccessRecord{
		Client: netip.MustParseAddr("203.0.113.9"), ID: []byte("r-1"), Method: []byte("POST"),
		Path: []byte("/api/seckill/1001/order"), Route: "order", Gate: route.Check,
		SKU: []byte("1001"), User: []byte("user-seven"), Status: 409, Reason: reason, Version: "abc",
		Arrived: 0, Decided: 30_000, Answered: 30_000, Done: 2_030_000,
	}
}

// once writes records through a whole life of a Log, and returns its lines.
func once(t *testing.T, set func(*Options), records ...metrics.AccessRecord) []map[string]any {
	t.Helper()
	var out page
	l := logTo(t, &out, set)
	l.Start(none)
	for _, e := range records {
		l.Log(e)
	}
	l.Close()
	return out.lines(t)
}

func TestLine_HasTheFieldsOfTheRecord(t *testing.T) {
	e := testRecord(reject.Admitted)
	e.Sent, e.Outcome, e.Target, e.Status = true, upstream.Answered, "http://127.0.0.1:9000", 200
	e.Gate, e.Reserved, e.Order = route.Reserve, true, metrics.OrderConfirmed
	e.Serial, e.Deadline = "s-1", 1_700_000_900_123
	e.BytesIn, e.BytesOut, e.Answered = 12, -1, 2_030_000
	got := once(t, func(o *Options) { o.Hold = 900e9 }, e)
	if len(got) != 1 {
		t.Fatalf("%d lines", len(got))
	}
	for name, want := range map[string]any{
		"request_id": "r-1", "client": "203.0.113.9", "method": "POST", "path": "/api/seckill/1001/order", "route": "order",
		"gate": "reserve",
		"sku":  "1001", "status": 200.0, "reason": "admitted", "outcome": "answered", "target": "http://127.0.0.1:9000",
		"serial": "s-1",
		"order":  "confirmed", "redis_time": "2023-11-14T22:13:20.123Z", "bytes_in": 12.0, "decision_us": 30.0,
		"shop_ms": 2.0, "total_ms": 2.0, "config": "abc",
	} {
		if got[0][name] != want {
			t.Errorf("%s is %v, want %v", name, got[0][name], want)
		}
	}
	for _, name := range []string{"bytes_out", "limit", "observed", "wait_ms", "detail"} {
		if v, there := got[0][name]; there {
			t.Errorf("%s is %v, and nothing is known of it", name, v)
		}
	}
}

func TestLine_HasTheDetailOfARejection(t *testing.T) {
	r := testRecord(reject.BadRequest)
	r.Detail = reject.Detail{Cause: reject.UserMissing, Operand: "$cookie_uid"}
	if got := once(t, nil, r)[0]["detail"]; got != "user missing: $cookie_uid" {
		t.Errorf("the detail is %v", got)
	}
}

func TestLine_UserIsAKeyedHash(t *testing.T) {
	user := func(secret string) string {
		return once(t, func(o *Options) { o.Secret = []byte(secret) }, testRecord(reject.SoldOut))[0]["user"].(string)
	}
	a, again, other := user("one secret"), user("one secret"), user("another one")
	if a != again {
		t.Errorf("two instances with one secret call a user %s and %s", a, again)
	}
	none, noneAgain := user(""), user("")
	if a == other || none == noneAgain {
		t.Errorf("the hash %s is the same without the secret", a)
	}
	if len(a) != 2*userBytes || strings.Contains(a, "seven") {
		t.Errorf("a user is %q", a)
	}
}

func TestLine_MaskedAddressIsANetwork(t *testing.T) {
	for from, want := range map[string]string{"203.0.113.9": "203.0.113.0", "2001:db8:1:2::3": "2001:db8:1::"} {
		e := testRecord(reject.SoldOut)
		e.Client = netip.MustParseAddr(from)
		if got := once(t, func(o *Options) { o.MaskIP = true }, e)[0]["client"]; got != want {
			t.Errorf("%s is shown as %v, want %s", from, got, want)
		}
		if got := once(t, nil, e)[0]["client"]; got != from {
			t.Errorf("%s is shown as %v", from, got)
		}
	}
}

// A path of any bytes stays within its string, and says nothing to a terminal.
func FuzzLine_IsJSON(f *testing.F) {
	f.Add([]byte("/a\"b\\\n\x1b[2J\x9b\xff\u0085é" + strings.Repeat("x", 3000)))
	l := logTo(f, io.Discard, nil)
	f.Fuzz(func(t *testing.T, path []byte) {
		e := testRecord(reject.SoldOut)
		e.Path, e.User, e.ID, e.Method = path, path, path, path
		c := coder{}
		c.record(&e)
		(&coder{bytes: c.bytes, reads: true}).record(&e)
		line := l.appendLine(nil, &e, l.users)
		var read map[string]any
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if bytes.ContainsFunc(line[:len(line)-1], func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
			t.Errorf("%q holds a control character", line)
		}
	})
}

func TestSample_LogsTheFirstAndOneInMany(t *testing.T) {
	l := logTo(t, io.Discard, nil)
	wanted := func(now int64, from, to uint64) (n int) {
		for nth := from; nth <= to; nth++ {
			if l.Sampled(now, reject.SoldOut, nth) {
				n++
			}
		}
		return n
	}
	if n := wanted(1e9, 1, 100); n != 2+10 {
		t.Errorf("of 100 rejections %d are logged, want the first 2 and one in 10", n)
	}
	if n := wanted(1e9, 101, 109); n != 0 {
		t.Errorf("%d more in the same second are logged", n)
	}
	if !l.Sampled(1e9, reject.Window, 1) {
		t.Error("the first for another reason is not logged")
	}
	if n := wanted(2e9, 111, 114); n != 2 {
		t.Errorf("in the next second %d are logged, want 2", n)
	}
	if n := wanted(1e9+5, 115, 116); n != 0 {
		t.Errorf("%d that arrived in the second before are logged beyond the first", n)
	}
	if err := set(l, Settings{Output: "off", RejectedFirst: 0, RejectedEvery: 1}); err != nil {
		t.Fatal(err)
	}
	if n := wanted(9e9, 1, 5); n != 5 {
		t.Errorf("of 5 rejections %d are logged, want all", n)
	}
}

func TestSummary_CountsWhatWasLeftOut(t *testing.T) {
	var out page
	l := logTo(t, &out, nil)
	var mu sync.Mutex
	counted := Totals{InFlight: 3}
	counted.Rejected[reject.Rate] = 7 // before anything is written
	totals := func() Totals {
		mu.Lock()
		defer mu.Unlock()
		return counted
	}
	l.Start(totals)
	mu.Lock()
	counted.Rejected[reject.SoldOut], counted.Forwarded = 1000, 5
	mu.Unlock()
	l.Log(testRecord(reject.SoldOut))
	l.Close()
	got := out.lines(t)
	last := got[len(got)-1]
	rejected, _ := last["rejected"].(map[string]any)
	if last["summary"] != true || len(rejected) != 1 || rejected["sold_out"] != 1000.0 ||
		last["admitted"] != 5.0 || last["in_flight"] != 3.0 || last["left_out"] != 999.0 {
		t.Errorf("the summary is %v", last)
	}
}

func TestSummary_IsOmittedWhenNothingWasLeftOut(t *testing.T) {
	var out page
	l := logTo(t, &out, nil)
	counted := Totals{}
	counted.Rejected[reject.SoldOut] = 1
	asked := false
	l.Start(func() Totals {
		defer func() { asked = true }()
		if !asked {
			return Totals{}
		}
		return counted
	})
	l.Log(testRecord(reject.SoldOut))
	l.Close()
	if got := out.lines(t); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
