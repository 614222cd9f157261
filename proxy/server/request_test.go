package server

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
	r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(strings.NewReader(raw))
	if err := r.readHead(&q); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return &q
}

func TestRequest_PeekFindsTheFirstFieldInAnyLetterCase(t *testing.T) {
	q := read(t, get("a: ", "A-b:  1\t", "ACCEPT: x", "accept: y", "Aa: 2", "Cookie: c=1", "Cookie: d=2",
		"Content-Type: a/b", "A_B: 3", "^: 4"))
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

// Fields are looked up as fasthttp's Peek does.
func TestRequest_PeekAgreesWithFasthttp(t *testing.T) {
	for _, raw := range append(canonical, browser, order, get("X-Forwarded-Proto: a", "x-forwarded-proto: b",
		"Upgrade: c", "UPGRADE: d", "Origin:", "Origin: e")) {
		raw = raw[:strings.Index(raw, "\r\n\r\n")+4]
		q := read(t, raw)
		var h fasthttp.RequestHeader
		if err := h.Read(bufio.NewReaderSize(strings.NewReader(raw), len(raw)+16)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"Accept", "Accept-Encoding", "Accept-Language", "Access-Control-Request-Method", "Content-Type", "Cookie", "Host",
			"If-None-Match",
			"If-Modified-Since", "Origin", "Referer", "Upgrade", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id",
			"User-Agent",
		} {
			if got, want := q.Peek(name), h.Peek(name); string(got) != string(want) {
				t.Errorf("%q: %s is %q, and %q by fasthttp", raw, name, got, want)
			}
		}
	}
}

func TestRequest_FieldsEndWhenYieldSaysSo(t *testing.T) {
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

func TestRequest_ZeroValueIsEmpty(t *testing.T) {
	used := read(t, get("A: b"))
	used.reset()
	for _, q := range []*Request{new(Request), used} {
		for range q.Fields {
			t.Error("there is a field")
		}
		if len(q.Method)+len(q.Target)+len(q.Host)+len(q.lines) > 0 || q.Peek("A") != nil || q.Close || q.HTTP10 {
			t.Errorf("%q %q of %q", q.Method, q.Target, q.Host)
		}
	}
}

func TestRequest_RejectedHeadLeavesItEmpty(t *testing.T) {
	for _, c := range rejected {
		r := newParser(small).newReader(strings.NewReader(c.raw))
		q := read(t, get("A: b"))
		if err := r.readHead(q); err != c.rule.err() || tell(q) != tell(new(Request)) || len(q.lines) > 0 {
			t.Errorf("%q: %v; %q", c.raw, err, q.lines)
		}
	}
}

// The buffers of a large head are released with it.
func TestRequest_KeepsBuffersOfUsualHeadsAlone(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = "F" + strconv.Itoa(i) + ": x"
	}
	for _, large := range []string{get("A: " + strings.Repeat("b", 9000)), get(many...), get(many[:300]...)} {
		r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(strings.NewReader(large + get()))
		var q Request
		if err := r.readHead(&q); err != nil || string(q.text) != large {
			t.Fatal(err)
		}
		if q.reset(); cap(q.fields) > usualFields {
			t.Errorf("after a head of %d bytes: %d fields", len(large), cap(q.fields))
		}
		if err := r.readHead(&q); err != nil || string(q.text) != get() {
			t.Errorf("behind it: %v", err)
		}
	}
}

// Pipelined heads lie in the room of the one before, and each is found whole.
func TestRequest_LargeHeadsComeOneBehindTheOther(t *testing.T) {
	raw := ""
	for i := range 20 {
		raw += get("A: " + strings.Repeat(string(rune('a'+i)), i*700))
	}
	for _, n := range []int{1, 1000, usualHead, 1 << 20} {
		r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(&pieces{[]byte(raw), n})
		var q Request
		for i := range 20 {
			if err := r.readHead(&q); err != nil || string(q.Peek("A")) != strings.Repeat(string(rune('a'+i)), i*700) {
				t.Fatalf("pieces of %d, head %d: %v, %.30q", n, i, err, q.lines)
			}
		}
	}
}

func TestRequest_TargetIsSplitAsReceived(t *testing.T) {
	for target, want := range map[string][2]string{
		"/a":                  {"/a", "-"},
		"/a?":                 {"/a", ""},
		"/a?b=c?d":            {"/a", "b=c?d"},
		"//a//b?%":            {"//a//b", "%"},
		"/%2Fa%zz\\b":         {"/%2Fa%zz\\b", "-"},
		"http://shop/a/b?c=d": {"/a/b", "c=d"},
		"HTTPS://Shop?a":      {"/", "a"},
		"http://shop":         {"/", "-"},
		"http://shop//a":      {"//a", "-"},
	} {
		q := read(t, line("GET "+target+" HTTP/1.1"))
		query := "-"
		if q.Query != nil {
			query = string(q.Query)
		}
		if string(q.Target) != target || string(q.Path) != want[0] || query != want[1] {
			t.Errorf("%s: target %q, path %q, query %q; want %q", target, q.Target, q.Path, query, want)
		}
	}
	for _, target := range []string{"*", "http://shop"} {
		if q := read(t, line("OPTIONS "+target+" HTTP/1.1")); string(q.Path) != "*" || q.Query != nil {
			t.Errorf("OPTIONS %s: path %q, query %q", target, q.Path, q.Query)
		}
	}
	if q := new(Request); q.Path != nil || q.Query != nil {
		t.Error("the zero Request has a path")
	}
}

func TestLimits_LenientTargetEncodesHighBytes(t *testing.T) {
	lenient := small
	lenient.LenientTarget = true
	raw := line("GET /商品?q=\xff%25 HTTP/1.1")
	r := newParser(lenient).newReader(strings.NewReader(raw + get()))
	var q Request
	if err := r.readHead(&q); err != nil {
		t.Fatal(err)
	}
	if string(q.Path) != "/%E5%95%86%E5%93%81" || string(q.Query) != "q=%FF%25" ||
		string(q.Target) != "/%E5%95%86%E5%93%81?q=%FF%25" {
		t.Errorf("path %q, query %q, target %q", q.Path, q.Query, q.Target)
	}
	if string(q.Host) != "shop" {
		t.Errorf("host %q in %q", q.Host, q.lines)
	}
	if err := r.readHead(&q); err != nil || string(q.Target) != "/a" {
		t.Errorf("behind it: %q, %v", q.Target, err)
	}
	for target, rule := range map[string]Rule{
		"/" + strings.Repeat("\xe5", 43): targetTooLong, // 130 bytes when encoded
		"http://sh\xf6p/":                badTarget,
		"/\x01":                          badTarget,
		"/\xe5%00":                       encodedControl,
	} {
		if got := play(lenient, []byte(line("GET "+target+" HTTP/1.1")), 7, 1); got.verdict() != rule {
			t.Errorf("%q: %v, want %v", target, got.err, rule)
		}
	}
}

func TestLimits_ZeroValueIsTheDefault(t *testing.T) {
	raw := get("A: " + strings.Repeat("b", defaultHeader-len(get("A: "))))
	if got := play(Limits{}, []byte(raw), 5000, 1); len(got.whole) != 1 {
		t.Errorf("a head of 32 KiB: %v", got.err)
	}
	raw = get("B: c", "A: "+strings.Repeat("b", defaultHeader-len(get("A: "))))
	if got := play(Limits{}, []byte(raw), 5000, 1); got.verdict() != headerTooLarge {
		t.Errorf("a larger one: %v", got.err)
	}
}
