package proxy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// diary is a journal that keeps what it is told, and wants what its test wants.
type diary struct {
	mu      sync.Mutex
	wants   bool
	entries []Entry
}

func (d *diary) Wants(int64, Reason, uint64) bool { return d.wants }

func (d *diary) Tell(e Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range []*[]byte{&e.ID, &e.Method, &e.Path, &e.SKU, &e.User} {
		*text = append([]byte(nil), *text...)
	}
	d.entries = append(d.entries, e)
}

func (d *diary) last(t *testing.T) Entry {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) != 1 {
		t.Fatalf("%d entries, want 1: %+v", len(d.entries), d.entries)
	}
	return d.entries[0]
}

// told lets one request through a gate and returns what the journal was told.
func told(t *testing.T, raw string, shop Shop, set func(*Options)) Entry {
	t.Helper()
	o, d := options(shop), &diary{wants: true}
	o.Journal, o.Version = d, "v1"
	if set != nil {
		set(&o)
	}
	addr, _ := gate(t, o)
	talk(t, addr, raw)
	return d.last(t)
}

const secretOrder = "POST /api/seckill/1001/order;jsessionid=S3CRET?token=S3CRET HTTP/1.1\r\nHost: shop\r\nCookie: uid=7; sid=S3CRET\r\nAuthorization: Bearer S3CRET\r\n" +
	"X-Request-Id: r-1\r\nContent-Length: 6\r\nConnection: close\r\n\r\nS3CRET"

func TestJournalIsToldNoSecret(t *testing.T) {
	e := told(t, secretOrder, &seen{}, func(o *Options) {
		o.Routes = []Route{{Name: "all", Match: "/", Gate: Limit, User: "$cookie_uid"}}
	})
	if text := fmt.Sprintf("%+v %s %s", e, e.Path, e.ID); strings.Contains(text, "S3CRET") || strings.Contains(fmt.Sprint(e.Path), fmt.Sprint([]byte("S3CRET"))) {
		t.Errorf("the journal was told a secret: %s", text)
	}
	if string(e.Path) != "/api/seckill/1001/order" || string(e.ID) != "r-1" || string(e.User) != "7" || e.In != 6 {
		t.Errorf("told %s %s %s, %d bytes", e.ID, e.Path, e.User, e.In)
	}
}

func TestPathThatNamesTheUserIsToldAsItsPattern(t *testing.T) {
	e := told(t, "POST /buy/alice/1001 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n", &seen{}, func(o *Options) {
		o.Routes = []Route{{Name: "buy", Match: "POST /buy/{who}/{sku}", Gate: Check, SKU: "$path_sku", User: "$path_who"}}
	})
	if string(e.Path) != "/buy/{who}/{sku}" || string(e.User) != "alice" {
		t.Errorf("told %s by %s", e.Path, e.User)
	}
}

func TestJournalIsToldTheDecision(t *testing.T) {
	refusing := func(*Outgoing, *fasthttp.Response) Outcome { return TimedOut }
	for name, tt := range map[string]struct {
		shop Shop
		raw  string
		set  func(*Options)
		want Entry
	}{
		"admitted": {&seen{}, browserOrder, nil, Entry{Reason: Admitted, Sent: true, Outcome: Answered, Status: 200}},
		"sold out": {&seen{}, browserOrder, soldOut, Entry{Reason: SoldOut, Status: 409}},
		"window": {&seen{}, browserOrder, func(o *Options) {
			o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
			o.Bounds = map[Reason]string{Window: "20 in 10ms"}
		}, Entry{Reason: Window, Status: 429, Limit: "20 in 10ms", Wait: time.Millisecond}},
		"rate": {&seen{}, browserOrder, func(o *Options) {
			full := keyed("per-ip", "$remote_addr", 0)
			full.PerSecond, full.Burst, full.Tokens = 20, 40, spent{}
			o.Rates = []KeyedRate{full}
		}, Entry{Reason: Rate, Status: 429, Limit: "limits.rate per-ip: 20/s, burst 40", Wait: time.Second}},
		"observed": {&seen{}, browserOrder, func(o *Options) { soldOut(o); o.Observe = true },
			Entry{Reason: Admitted, Observed: SoldOut, Sent: true, Outcome: Answered, Status: 200}},
		"unknown": {shopFunc(refusing), browserOrder, nil, Entry{Reason: UpstreamTimeout, Sent: true, Outcome: TimedOut, Status: 504}},
		"no HTTP": {&seen{}, "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", nil, Entry{Reason: Malformed, Status: 400}},
	} {
		e := told(t, strings.Replace(tt.raw, "keep-alive", "close", 1), tt.shop, tt.set)
		got := Entry{Reason: e.Reason, Observed: e.Observed, Sent: e.Sent, Outcome: e.Outcome, Status: e.Status, Limit: e.Limit, Wait: e.Wait}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
			t.Errorf("%s: told %+v, want %+v", name, got, tt.want)
		}
		if e.Version != "v1" || e.Came > e.Decided || e.Decided > e.Answered || e.Answered > e.Done {
			t.Errorf("%s: of %s, came %d, decided %d, answered %d, done %d", name, e.Version, e.Came, e.Decided, e.Answered, e.Done)
		}
	}
}

// spent is a rate of which nothing is left.
type spent struct{}

func (spent) Take(int64, []byte) (time.Duration, bool) { return time.Second, false }
func (spent) Look(int64, []byte) (int, time.Duration, time.Duration) {
	return 0, time.Second, time.Second
}

func TestJournalIsToldWhatBecameOfAnOrder(t *testing.T) {
	o, _ := reserving(&seen{})
	d := &diary{}
	o.Journal = d
	addr, p := gate(t, o)
	talk(t, addr, strings.Replace(buying, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	if e := d.last(t); !e.Held || e.Fate != Placed || e.Serial != "s-1" || e.Deadline != 1_700_000_000_123 {
		t.Errorf("told %+v", e)
	}
	if n := p.Totals(); n.Forwarded != 1 || n.Refused != (Totals{}).Refused {
		t.Errorf("the totals are %+v", n)
	}
}

func TestRefusalsThatTheJournalDoesNotWantAreNotTold(t *testing.T) {
	o, d := options(&seen{}), &diary{}
	o.Journal = d
	soldOut(&o)
	addr, p := gate(t, o)
	talk(t, addr, strings.Replace(browserOrder, "keep-alive", "close", 1))
	if len(d.entries) != 0 {
		t.Errorf("told %+v", d.entries)
	}
	if n := p.Totals().Refused[SoldOut]; n != 1 {
		t.Errorf("%d refusals are counted, want 1", n)
	}
}
