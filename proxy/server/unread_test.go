package server

import (
	"io"
	"strconv"
	"strings"
	"testing"
)

// halting is a connection on which s arrives, and that must not be asked for more before next is set.
type halting struct {
	t    *testing.T
	s    string
	next string
}

func (h *halting) Read(p []byte) (int, error) {
	if h.s == "" {
		h.s, h.next = h.next, ""
	}
	if h.s == "" {
		h.t.Error("asked for bytes that have not come")
		return 0, io.EOF
	}
	n := copy(p, h.s)
	h.s = h.s[n:]
	return n, nil
}

func TestReader_DrainNeverWaits(t *testing.T) {
	p := make([]byte, 16<<10)
	for _, c := range bodies {
		for came := range min(len(c.body)+1, 100) {
			for _, read := range []int{0, 1, 2, 5} {
				src := &halting{t: t, s: c.head + c.body[:came]}
				r := newParser(Limits{Header: 16 << 10, Target: 100}).newReader(src)
				readHead(r)
				if c.content != "" && came > contentAt(c.head, c.body) {
					r.readBody(p[:read])
				}
				whole := r.drainBody()
				if whole != (came == len(c.body)) || whole != r.bodyRead() || len(r.came()) > 0 {
					t.Fatalf("%q after %d: drained %v, read %v, kept %v", c.body[:came], read, whole, r.bodyRead(), len(r.came()))
				}
				src.next = c.body[came:] + get()
				if !whole { // it can still be read, once the rest comes
					if _, err := readAll(r, p); err != nil {
						t.Fatalf("%q after %d: %v", c.body[:came], read, err)
					}
				}
				if head, err := readHead(r); err != nil || head != get() {
					t.Fatalf("behind %q: %q, %v", c.body[:came], head, err)
				}
			}
		}
	}
}

// contentAt is how many bytes of framing stand before a body's content.
func contentAt(head, body string) int {
	if head == chunked("") {
		return strings.Index(body, "\n") + 1
	}
	return 0
}

func TestReader_DrainLeavesTheNextRequestAlone(t *testing.T) {
	for _, c := range bodies {
		r := newParser(Limits{Header: 16 << 10, Target: 100}).newReader(&halting{t: t, s: c.head + c.body + get("A: next")})
		readHead(r)
		came := len(c.head)+len(c.body) <= usualHead // along with the head
		if first, again := r.drainBody(), r.drainBody(); first != came || again != came || r.pipelined() != came {
			t.Fatalf("%.50q: drained %v, %v", c.body, first, again)
		}
		if _, err := readAll(r, make([]byte, 4096)); err != nil {
			t.Fatalf("%.50q: %v", c.body, err)
		}
		if head, err := readHead(r); err != nil || head != get("A: next") {
			t.Fatalf("behind %.50q: %q, %v", c.body, head, err)
		}
	}
}

func TestReader_DrainNeverPassesABrokenBody(t *testing.T) {
	for _, c := range breaches {
		r := newParser(small).newReader(&halting{t: t, s: chunked(c.body) + get()})
		readHead(r)
		if r.drainBody() || r.bodyRead() {
			t.Fatalf("%q: drained", c.body)
		}
		if head, err := readHead(r); head != "" || err != c.rule.err() {
			t.Fatalf("%q: %q, %v", c.body, head, err)
		}
	}
}

func TestReader_UnreadBodyIsNeverReadAsARequest(t *testing.T) {
	smuggled := get("A: smuggled")
	p := make([]byte, 4096)
	for _, raw := range []string{
		post(smuggled, "Content-Length: "+strconv.Itoa(len(smuggled))),
		chunked(strconv.FormatInt(int64(len(smuggled)), 16) + "\r\n" + smuggled + "\r\n0\r\n\r\n"),
	} {
		for _, read := range []int{0, 1, 40} {
			src := &pieces{[]byte(raw + get()), 1 << 20}
			r := newParser(small).newReader(src)
			if _, err := readHead(r); err != nil {
				t.Fatal(err)
			}
			r.readBody(p[:read])
			for range 3 {
				if head, err := readHead(r); head != "" || err != io.EOF {
					t.Fatalf("%q: %q, %v", raw, head, err)
				}
			}
			// What was given up has not ended, and nothing of it comes any more.
			if n, err := r.readBody(p); n != 0 || err != io.ErrUnexpectedEOF || r.drainBody() || r.bodyRead() {
				t.Fatalf("%q: the body given up: %d, %v", raw, n, err)
			}
			if r.atBoundary() || r.pipelined() || len(r.came()) > 0 {
				t.Fatalf("%q: at boundary %v, pipelined %v, kept %v", raw, r.atBoundary(), r.pipelined(), len(r.came()))
			}
		}
	}
}

func TestRequest_HeadStaysWhileItsBodyIsRead(t *testing.T) {
	p := make([]byte, 4096)
	for _, c := range bodies {
		for _, n := range []int{1, 50, 1 << 20} {
			r := newParser(small).newReader(&pieces{[]byte(c.head + c.body + get()), n})
			var q Request
			if err := r.readHead(&q); err != nil {
				t.Fatal(err)
			}
			if content, err := readAll(r, p); err != nil || content != c.content || string(q.text) != c.head {
				t.Fatalf("%.50q: head %q, content %.50q, %v", c.body, q.lines, content, err)
			}
			if err := r.readHead(&q); err != nil || string(q.text) != get() {
				t.Fatalf("behind %.50q: %q, %v", c.body, q.lines, err)
			}
		}
	}
}
