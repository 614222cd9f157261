package server

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// every is all raw requests of the tables, and all that follow one another.
func every() (all []string) {
	for _, c := range rejected {
		all = append(all, c.raw, get()+c.raw, chunked("3\r\nabc\r\n0\r\n\r\n")+c.raw)
	}
	for _, c := range breaches {
		all = append(all, chunked(c.body), get()+chunked(c.body)+get())
	}
	all = append(all, "\r\n"+get()+"\r\n"+get())
	all = append(all, canonical...)
	return append(all, strings.Join(canonical[:12], ""), strings.Join(canonical[len(canonical)-8:], ""))
}

func TestParser_ResultDoesNotDependOnPieces(t *testing.T) {
	for _, raw := range every() {
		want := play(small, []byte(raw), 1<<20, 4096)
		for _, n := range []int{1, 2, 3, 7, 64, 1000} {
			for _, size := range []int{1, 5, 4096} {
				if got := play(small, []byte(raw), n, size); !got.equal(want) {
					t.Fatalf("%q in pieces of %d, read by %d: %+v, want %+v", raw, n, size, got, want)
				}
			}
		}
	}
}

func TestReader_ReadsAHeadAloneWhenItsBodyComesLater(t *testing.T) {
	head := post("", "Content-Length: 5")
	src := &pieces{[]byte(head + "hello"), 1}
	if got, err := readHead(newParser(small).newReader(src)); got != head || err != nil || string(src.data) != "hello" {
		t.Fatalf("read %q, %v with %q still to come", got, err, src.data)
	}
}

func TestReader_HandsOnOneHeadAtATime(t *testing.T) {
	heads := []string{get("A: 1"), post("", "Content-Length: 5"), chunked(""), get("A: 2")}
	bodies := []string{"", "hello", "1\r\na\r\n0\r\n\r\n", ""}
	contents := []string{"", "hello", "a", ""}
	raw := ""
	for i := range heads {
		raw += heads[i] + bodies[i]
	}
	r := newParser(small).newReader(&pieces{[]byte(raw), 1 << 20})
	p := make([]byte, 4096)
	for i, want := range heads {
		if i > 0 && (!r.pipelined() || r.atBoundary()) {
			t.Fatalf("request %d is not said to wait", i)
		}
		if head, err := readHead(r); err != nil || head != want {
			t.Fatalf("request %d: %q, %v", i, head, err)
		}
		if body := bodies[i] != ""; body && (r.atBoundary() || r.pipelined()) || r.bodyRead() == body {
			t.Fatalf("request %d: at boundary %v, pipelined %v, body read %v", i, r.atBoundary(), r.pipelined(), r.bodyRead())
		}
		if content, err := readAll(r, p); content != contents[i] || err != nil || !r.bodyRead() {
			t.Fatalf("request %d: content %q, %v", i, content, err)
		}
	}
	if !r.atBoundary() || r.pipelined() {
		t.Fatalf("at the end: at boundary %v, pipelined %v", r.atBoundary(), r.pipelined())
	}
}

func TestReader_PartOfAHeadIsNoBoundary(t *testing.T) {
	var r *reader
	src := &pieces{[]byte(get("A: b")), 10}
	r = newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
		if begun := len(src.data) < len(get("A: b")); r.atBoundary() == begun || r.pipelined() != begun {
			t.Errorf("before %q: at boundary %v, pipelined %v", src.data, r.atBoundary(), r.pipelined())
		}
		return src.Read(p)
	}))
	if head, err := readHead(r); head != get("A: b") || err != nil || !r.atBoundary() || r.pipelined() {
		t.Fatalf("%q, %v, at boundary %v, pipelined %v", head, err, r.atBoundary(), r.pipelined())
	}
}

func TestReader_NothingIsReadAfterAProtocolError(t *testing.T) {
	src := &pieces{[]byte("GET / HTTP/1.1\nHost: a\r\n\r\n"), 15}
	r := newParser(small).newReader(src)
	for range 3 {
		if head, err := readHead(r); head != "" || err != bareLF.err() {
			t.Fatalf("read %q, %v", head, err)
		}
	}
	if len(src.data) == 0 || r.atBoundary() || r.pipelined() {
		t.Fatalf("%d bytes are left; at boundary %v, pipelined %v", len(src.data), r.atBoundary(), r.pipelined())
	}
}

func TestReader_NothingIsARequestAfterClose(t *testing.T) {
	for _, raw := range []string{
		get("Connection: x, CLOSE"),
		post("hello", "Connection: close", "Content-Length: 5"),
		post("5\r\nhello\r\n0\r\n\r\n", "Connection: close", "Transfer-Encoding: chunked"),
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	} {
		for _, n := range []int{1, 1 << 20} {
			got := play(small, []byte(raw+get()), n, 4096)
			if len(got.whole) != 1 || got.err != io.EOF || !got.heads[0].Close {
				t.Errorf("%q: %q, then %v", raw, got.whole, got.err)
			}
		}
	}
}

func TestReader_ChecksBytesBeforeTheErrorThatCameWithThem(t *testing.T) {
	r := newParser(small).newReader(io.MultiReader(strings.NewReader(get()), lateReader{}))
	if head, err := readHead(r); err != nil || head != get() {
		t.Fatalf("%q, %v", head, err)
	}
	r = newParser(small).newReader(&together{get(), io.EOF})
	if head, err := readHead(r); err != nil || head != get() {
		t.Fatalf("%q, %v", head, err)
	}
	if _, err := readHead(r); err != io.EOF {
		t.Fatalf("%v, want EOF", err)
	}
}

// together returns its bytes and its error in one call, as a Reader may, again and again.
type together struct {
	s   string
	err error
}

func (s *together) Read(p []byte) (int, error) {
	n := copy(p, s.s)
	s.s = s.s[n:]
	return n, s.err
}

// lateReader is a connection whose deadline has passed.
type lateReader struct{}

func (lateReader) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestReader_LateHeadIs408AndAnIdleConnectionIsNot(t *testing.T) {
	r := newParser(small).newReader(io.MultiReader(strings.NewReader("GET / HT"), lateReader{}))
	if _, err := readHead(r); err != (ProtocolError{408, headLate}) {
		t.Fatalf("%v, want a violation", err)
	}
	for _, raw := range []string{"", "\r\n"} {
		r = newParser(small).newReader(io.MultiReader(strings.NewReader(raw), lateReader{}))
		if head, err := readHead(r); head != "" || err != os.ErrDeadlineExceeded || !r.atBoundary() {
			t.Fatalf("after %q: read %q, %v, at boundary %v", raw, head, err, r.atBoundary())
		}
	}
}

func TestHead_TellsWhatTheFieldsAskFor(t *testing.T) {
	for raw, want := range map[string]Head{
		get():                                          {ContentLength: -1},
		post("hello", "Content-Length: 5"):             {ContentLength: 5},
		get("Content-Length: 0"):                       {ContentLength: 0},
		chunked("0\r\n\r\n"):                           {ContentLength: -1, Chunked: true},
		get("Expect: 100-CONTINUE"):                    {ContentLength: -1, Expect100: true},
		get("Connection: a, Close"):                    {ContentLength: -1, Close: true, Named: true},
		get("Connection: ,close, Upgrade"):             {ContentLength: -1, Close: true},
		get("Connection: b", "Connection: keep-alive"): {ContentLength: -1, Named: true},
		get("Upgrade: websocket", "Connection: keep-alive, UPGRADE"): {ContentLength: -1,
			Upgrade: true},
		get("Upgrade: websocket"): {ContentLength: -1},
		get("Upgrade: websocket", "Connection: Upgrade", "Connection: close"): {ContentLength: -1,
			Close: true},
		get("x-http-METHOD: PUT"): {ContentLength: -1,
			Override: true},
		get("X-Original-URL: /"): {ContentLength: -1,
			Override: true},
		get("X-Method-Override: a"): {ContentLength: -1,
			Override: true},
		get("X-HTTP-Method-Override: a"): {ContentLength: -1,
			Override: true},
		get("X-Rewrite-URL: a", "X-Method-Overrides: b"): {ContentLength: -1,
			Override: true},
		get("Connection: Upgrade", "Upgrade: , a/1, H2C/2"): {ContentLength: -1,
			Upgrade: true, H2C: true},
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n": {ContentLength: -1,
			HTTP10: true, Close: true},
		"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n": {ContentLength: -1,
			HTTP10: true},
		"GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade, keep-alive\r\nUpgrade: a\r\n\r\n": {ContentLength: -1,
			HTTP10: true},
	} {
		got := play(small, []byte(raw), 1<<20, 4096)
		if len(got.heads) != 1 || got.heads[0] != want {
			t.Errorf("%q: %+v, want %+v", raw, got.heads, want)
		}
	}
}

func TestReader_IdleConnectionKeepsNoBuffer(t *testing.T) {
	raw := get() + chunked("1\r\na\r\n0\r\n\r\n") + post("hello", "Content-Length: 5")
	r := newParser(small).newReader(&pieces{[]byte(raw), 1})
	p := make([]byte, 4096)
	for range 3 {
		readHead(r)
		if content, err := readAll(r, p); err != nil || len(r.came()) > 0 || !r.atBoundary() {
			t.Fatalf("after %q, %v: kept %v", content, err, len(r.came()))
		}
	}
}

func TestReader_ReadsAheadNoMoreThanABuffer(t *testing.T) {
	flood := bytes.Repeat([]byte(get()), 10000)
	src := &pieces{flood, len(flood)}
	r := newParser(small).newReader(src)
	readHead(r)
	if read := len(flood) - len(src.data); read > len(*r.parser.large.Get().(*[]byte)) {
		t.Fatalf("%d bytes read ahead, more than a large buffer holds", read)
	}
}

func TestRequest_SlowHeadCostsNoMoreThanItsSize(t *testing.T) {
	limits := Limits{Header: 16 << 10, Target: 8 << 10}
	for _, c := range []struct{ head, most int }{{1000, usualHead}, {usualHead, usualHead}, {usualHead + 1, 16 << 10},
		{16 << 10, 16 << 10}} {
		raw := get("A: " + strings.Repeat("b", c.head-len(get("A: "))))
		most := 0
		var q Request
		src := &pieces{[]byte(raw), 100}
		var r *reader
		r = newParser(limits).newReader(readerFunc(func(p []byte) (int, error) {
			most = max(most, len(r.buf))
			return src.Read(p)
		}))
		if err := r.readHead(&q); err != nil || string(q.text) != raw {
			t.Fatalf("head of %d: %v", c.head, err)
		}
		if most > c.most {
			t.Errorf("head of %d: kept in %d bytes, want at most %d", c.head, most, c.most)
		}
	}
}

func TestReader_MuteSourceIsAnError(t *testing.T) {
	mute := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, err := readHead(newParser(small).newReader(mute)); err != io.ErrNoProgress {
		t.Fatal(err)
	}
	for _, head := range []string{post("", "Content-Length: 1"), chunked("")} {
		r := newParser(small).newReader(io.MultiReader(strings.NewReader(head), mute))
		readHead(r)
		if _, err := r.readBody(make([]byte, 1)); err != io.ErrNoProgress {
			t.Fatalf("%q: %v", head, err)
		}
	}
}

func TestReader_ReturnsTheConnectionsErrorAsItIs(t *testing.T) {
	reset := errors.New("reset")
	broken := readerFunc(func([]byte) (int, error) { return 0, reset })
	for _, raw := range []string{"", "GET", post("a", "Content-Length: 2"), chunked("1\r\na"),
		chunked("1\r\na\r\n0\r\n")} {
		r := newParser(small).newReader(io.MultiReader(strings.NewReader(raw), broken))
		p := make([]byte, 4096)
		_, err := readHead(r)
		if err == nil {
			_, err = readAll(r, p)
		}
		if err != reset {
			t.Errorf("%q: %v, want %v", raw, err, reset)
		}
	}
}
