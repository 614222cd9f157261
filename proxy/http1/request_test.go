package http1

import (
	"bufio"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// read reads one head that is lawful.
func read(t *testing.T, raw string) *Request {
	t.Helper()
	var q Request
	if err := NewGuard(Limits{Header: 16 << 10, Target: 8 << 10}).NewReader(strings.NewReader(raw)).ReadHead(&q); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return &q
}

func TestPeekFindsTheFirstFieldOfANameInAnyLetterCase(t *testing.T) {
	q := read(t, get("a: ", "A-b:  1\t", "ACCEPT: x", "accept: y", "Aa: 2", "Cookie: c=1", "Cookie: d=2", "Content-Type: a/b", "A_B: 3", "^: 4"))
	for name, want := range map[string]string{
		"A": "", "a-B": "1", "Accept": "x", "aa": "2", "Cookie": "c=1", "content-type": "a/b", "A_B": "3", "Host": "shop",
	} {
		if got := q.Peek(name); got == nil || string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"", "b", "A-b:", "Acce", "~"} {
		if got := q.Peek(name); got != nil {
			t.Errorf("%q: %q, want nothing", name, got)
		}
	}
}

// What the gate looks up, fasthttp's Peek would have told it too.
func TestPeekAgreesWithFasthttp(t *testing.T) {
	for _, raw := range append(canonical, browser, order, get("X-Forwarded-Proto: a", "x-forwarded-proto: b", "Upgrade: c", "UPGRADE: d", "Origin:", "Origin: e")) {
		raw = raw[:strings.Index(raw, "\r\n\r\n")+4]
		q := read(t, raw)
		var h fasthttp.RequestHeader
		if err := h.Read(bufio.NewReaderSize(strings.NewReader(raw), len(raw)+16)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"Accept", "Accept-Encoding", "Accept-Language", "Access-Control-Request-Method", "Content-Type", "Cookie", "Host", "If-None-Match",
			"If-Modified-Since", "Origin", "Referer", "Upgrade", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id", "User-Agent",
		} {
			if got, want := q.Peek(name), h.Peek(name); string(got) != string(want) {
				t.Errorf("%q: %s is %q, and %q by fasthttp", raw, name, got, want)
			}
		}
	}
}

func TestFieldsEndWhenEnoughWasSeen(t *testing.T) {
	names := ""
	for name := range read(t, get("A: 1", "B: 2", "C: 3")).Fields {
		if names += string(name); names == "HostA" {
			break
		}
	}
	if names != "HostA" {
		t.Errorf("saw %q", names)
	}
}

func TestEmptyRequestTellsNothing(t *testing.T) {
	used := read(t, get("A: b"))
	used.Forget()
	for _, q := range []*Request{new(Request), used} {
		for range q.Fields {
			t.Error("there is a field")
		}
		if len(q.Method())+len(q.Target())+len(q.Host())+len(q.Text()) > 0 || q.Peek("A") != nil || q.Close || q.HTTP10 {
			t.Errorf("%q %q of %q", q.Method(), q.Target(), q.Host())
		}
	}
}

func TestRefusedHeadLeavesTheRequestEmpty(t *testing.T) {
	for _, c := range refusals {
		r := NewGuard(small).NewReader(strings.NewReader(c.raw))
		q := read(t, get("A: b"))
		if err := r.ReadHead(q); err != c.kind.violation() || tell(q) != tell(new(Request)) || len(q.Text()) > 0 {
			t.Errorf("%q: %v; %q", c.raw, err, q.Text())
		}
	}
}

// What a large head has needed is not kept by whoever serves small ones.
func TestRequestKeepsTheRoomOfUsualHeadsOnly(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = "F" + strconv.Itoa(i) + ": x"
	}
	for _, large := range []string{get("A: " + strings.Repeat("b", 9000)), get(many...), get(many[:300]...)} {
		r := NewGuard(Limits{Header: 16 << 10, Target: 8 << 10}).NewReader(strings.NewReader(large + get()))
		var q Request
		if err := r.ReadHead(&q); err != nil || string(q.Text()) != large {
			t.Fatal(err)
		}
		if q.Forget(); q.size() != usualHead || cap(q.fields) > usualFields {
			t.Errorf("after a head of %d bytes: %d bytes, %d fields", len(large), q.size(), cap(q.fields))
		}
		if err := r.ReadHead(&q); err != nil || string(q.Text()) != get() {
			t.Errorf("behind it: %v", err)
		}
	}
}

// Pipelined heads lie in the room of the one before, and each is found whole.
func TestLargeHeadsComeOneBehindTheOther(t *testing.T) {
	raw := ""
	for i := range 20 {
		raw += get("A: " + strings.Repeat(string(rune('a'+i)), i*700))
	}
	for _, n := range []int{1, 1000, usualHead, 1 << 20} {
		r := NewGuard(Limits{Header: 16 << 10, Target: 8 << 10}).NewReader(&pieces{[]byte(raw), n})
		var q Request
		for i := range 20 {
			if err := r.ReadHead(&q); err != nil || string(q.Peek("A")) != strings.Repeat(string(rune('a'+i)), i*700) {
				t.Fatalf("pieces of %d, head %d: %v, %.30q", n, i, err, q.Text())
			}
		}
	}
}
