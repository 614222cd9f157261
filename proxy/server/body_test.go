package server

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// breaches are bodies that break a rule of chunks, and the content that comes before that.
var breaches = []struct {
	body    string
	rule    Rule
	content string
}{
	{"\r\n", badChunkSize, ""},
	{"g\r\n", badChunkSize, ""},
	{"-1\r\n", badChunkSize, ""},
	{"0x5\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"+5\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{" 5\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"5\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"5_0\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"00000000000000005\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"00000000000000000\r\n\r\n", badChunkSize, ""},
	{"8000000000000000\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"ffffffffffffffff\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"10000000000000005\r\nhello\r\n0\r\n\r\n", badChunkSize, ""},
	{"1\r\na\r\n\r\n0\r\n\r\n", badChunkSize, "a"},
	{"1\r\na\r\n8000000000000000\r\n", badChunkSize, "a"},
	{"5;a=b\r\nhello\r\n0\r\n\r\n", chunkExtension, ""},
	{"5 \r\nhello\r\n0\r\n\r\n", chunkExtension, ""},
	{"5\t\r\nhello\r\n0\r\n\r\n", chunkExtension, ""},
	{"0;\r\n\r\n", chunkExtension, ""},
	{"5\r\nhello\r\n0;\r\n\r\n", chunkExtension, "hello"},
	{"5\rhello\r\n0\r\n\r\n", badChunkEnd, ""},
	{"5\r\nhello!\r\n0\r\n\r\n", badChunkEnd, "hello"},
	{"5\r\nhello\n0\r\n\r\n", badChunkEnd, "hello"},
	{"5\r\nhello\r0\r\n\r\n", badChunkEnd, "hello"},
	{"5\r\nhello0\r\n\r\n", badChunkEnd, "hello"},
	{"0\r\r\n", badChunkEnd, ""},
	{"0\r\n\rX", badChunkEnd, ""},
	{"0\r\nA: b\r\n\r\n", trailer, ""},
	{"0\r\n\n", trailer, ""},
	{"2\r\nab\r\n1\r\nc\r\n00\r\n0\r\n\r\n", trailer, "abc"},
}

func TestBody_BrokenChunkRejectsAllBehindIt(t *testing.T) {
	for _, c := range breaches {
		for _, n := range []int{1, 2, 1 << 20} {
			got := play(small, []byte(chunked(c.body)+get()), n, 4096)
			if got.verdict() != c.rule || len(got.whole) > 0 || got.begun != (message{chunked(""), c.content}) {
				t.Errorf("%q in pieces of %d: %+v, want %v after %q", c.body, n, got, c.rule, c.content)
			}
		}
	}
}

func TestBody_NothingIsReadAfterAProtocolError(t *testing.T) {
	for _, c := range breaches {
		src := &pieces{[]byte(chunked(c.body) + get()), len(chunked(c.body))}
		r := newParser(small).newReader(src)
		p := make([]byte, 4096)
		readHead(r)
		if _, err := readAll(r, p); err != c.rule.err() {
			t.Fatalf("%q: %v", c.body, err)
		}
		for range 3 {
			if n, err := r.readBody(p); n != 0 || err != c.rule.err() {
				t.Fatalf("%q: the body gives %d, %v", c.body, n, err)
			}
			if head, err := readHead(r); head != "" || err != c.rule.err() {
				t.Fatalf("%q: the next head is %q, %v", c.body, head, err)
			}
		}
		if len(src.data) != len(get()) || len(r.came()) > 0 || r.bodyRead() || r.atBoundary() || r.pipelined() ||
			r.drainBody() {
			t.Fatalf("%q: %d bytes left, kept %v, body read %v", c.body, len(src.data), len(r.came()), r.bodyRead())
		}
	}
}

// bodies are whole ones, with their framing and without.
var bodies = []struct{ head, body, content string }{
	{post("", "Content-Length: 1"), "a", "a"},
	{post("", "Content-Length: 5"), "hello", "hello"},
	{post("", "Content-Length: 9000"), strings.Repeat("x", 9000), strings.Repeat("x", 9000)},
	{chunked(""), "0\r\n\r\n", ""},
	{chunked(""), "0000000000000000\r\n\r\n", ""},
	{chunked(""), "5\r\nhello\r\n0\r\n\r\n", "hello"},
	{chunked(""), "1\r\n\r\r\n1\r\n\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n\r\n"},
	{chunked(""), "0000000000000005\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\n", "hello0123456789"},
	{chunked(""), "2328\r\n" + strings.Repeat("y", 9000) + "\r\n1\r\nz\r\n0\r\n\r\n", strings.Repeat("y", 9000) + "z"},
}

func TestBody_ContentComesWithoutFramingAndToItsLastByte(t *testing.T) {
	for _, c := range bodies {
		for _, n := range []int{1, 2, 3, 5, 100, 1 << 20} {
			for _, size := range []int{1, 2, 4096} {
				got := play(small, []byte(c.head+c.body+get()), n, size)
				if len(got.whole) != 2 || got.whole[0].content != c.content || got.whole[1] != (message{get(), ""}) ||
					got.err != io.EOF {
					t.Fatalf("%.90q in pieces of %d, read by %d: %.300q, then %v", c.head+c.body, n, size, got.whole, got.err)
				}
			}
		}
	}
}

func TestBody_CutShortIsNeverWhole(t *testing.T) {
	p := make([]byte, 4096)
	for _, c := range bodies {
		for cut := range min(len(c.body), 100) {
			over := 0 // how often the end was met
			src := &pieces{[]byte(c.head + c.body[:cut]), 1 << 20}
			r := newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
				n, err := src.Read(p)
				if err == io.EOF {
					over++
				}
				return n, err
			}))
			if head, err := readHead(r); err != nil || head != c.head {
				t.Fatalf("%q, %v", head, err)
			}
			content, err := readAll(r, p)
			if err != io.ErrUnexpectedEOF || !strings.HasPrefix(c.content, content) || r.bodyRead() || r.atBoundary() ||
				len(r.came()) > 0 {
				t.Fatalf("%q: %q, then %v", c.body[:cut], content, err)
			}
			if n, err := r.readBody(p); n != 0 || err != io.ErrUnexpectedEOF {
				t.Fatalf("%q: again %d, %v", c.body[:cut], n, err)
			}
			if head, err := readHead(r); head != "" || err == nil || over != 1 {
				t.Fatalf("%q: a next head %q, %v; the end was met %d times", c.body[:cut], head, err, over)
			}
		}
	}
}

func TestBody_OfKnownLengthEndsWithItsLastBytes(t *testing.T) {
	for _, n := range []int{1 << 20, 1} { // along with the head, and behind it
		r := newParser(small).newReader(&pieces{[]byte(post("a", "Content-Length: 1")), n})
		p := make([]byte, 4096)
		readHead(r)
		if n, err := r.readBody(p); n != 1 || err != io.EOF {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

func TestBody_ContentComesBeforeTheErrorThatCameWithIt(t *testing.T) {
	reset := errors.New("reset")
	r := newParser(small).newReader(io.MultiReader(strings.NewReader(post("", "Content-Length: 9")), &together{"hello",
		reset}))
	p := make([]byte, 4096)
	readHead(r)
	if content, err := readAll(r, p); content != "hello" || err != reset {
		t.Fatalf("%q, %v", content, err)
	}
}

// What a read costs is paid once for each piece, not for each chunk.
func TestBody_SmallChunksAreReadInPieces(t *testing.T) {
	const size = 100_000
	content := strings.Repeat("x", size)
	body := strings.Repeat("1\r\nx\r\n", size) + "0\r\n\r\n"
	src, reads := &pieces{[]byte(chunked(body) + get()), 1 << 20}, 0
	r := newParser(Limits{}).newReader(readerFunc(func(p []byte) (int, error) {
		reads++
		return src.Read(p)
	}))
	readHead(r)
	p, calls, got := make([]byte, usualHead), 0, 0
	for err := error(nil); err == nil; calls++ {
		var n int
		if n, err = r.readBody(p); string(p[:n]) != content[:n] || err != nil && err != io.EOF {
			t.Fatalf("%.20q, %v", p[:n], err)
		}
		got += n
	}
	most := len(body)/usualHead + 5
	if got != size || reads > most || calls > most {
		t.Errorf("%d bytes, %d reads, %d calls; want %d and at most %d", got, reads, calls, size, most)
	}
	if next, err := readHead(r); next != get() || err != nil {
		t.Fatalf("behind the body: %q, %v", next, err)
	}
}

func TestBody_EndStaysTheEnd(t *testing.T) {
	p := make([]byte, 4096)
	for _, head := range []string{get(), post("", "Content-Length: 0"), post("a", "Content-Length: 1"),
		chunked("1\r\na\r\n0\r\n\r\n")} {
		r := newParser(small).newReader(&pieces{[]byte(head + get()), 1 << 20})
		readHead(r)
		readAll(r, p)
		for range 3 {
			if n, err := r.readBody(p); n != 0 || err != io.EOF {
				t.Fatalf("%q: %d, %v", head, n, err)
			}
		}
		if next, err := readHead(r); next != get() || err != nil {
			t.Fatalf("behind %q: %q, %v", head, next, err)
		}
	}
}

func TestBody_BeforeAnyHeadHasEnded(t *testing.T) {
	r := newParser(small).newReader(readerFunc(func([]byte) (int, error) { panic("asked for a byte") }))
	if n, err := r.readBody(make([]byte, 1)); n != 0 || err != io.EOF || !r.bodyRead() || !r.drainBody() {
		t.Fatalf("read %d, %v", n, err)
	}
}

func TestBody_TimeoutLosesNothing(t *testing.T) {
	for _, c := range bodies {
		src, late := &pieces{[]byte(c.head + c.body), 1}, false
		r := newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
			if late = !late && len(src.data) <= len(c.body); late {
				return 0, os.ErrDeadlineExceeded
			}
			return src.Read(p)
		}))
		p := make([]byte, 4096)
		readHead(r)
		content := ""
		part, err := readAll(r, p)
		for ; err == os.ErrDeadlineExceeded; part, err = readAll(r, p) {
			content += part
		}
		if content += part; err != nil || content != c.content {
			t.Fatalf("%.50q: %.50q, %v", c.body, content, err)
		}
	}
}

func TestBody_EmptyReadReadsNothing(t *testing.T) {
	src := &pieces{[]byte(chunked("1\r\na\r\n0\r\n\r\n")), len(chunked(""))}
	r := newParser(small).newReader(src)
	readHead(r)
	if n, err := r.readBody(nil); n != 0 || err != nil || len(src.data) != len("1\r\na\r\n0\r\n\r\n") {
		t.Fatalf("read %d, %v, %d bytes left", n, err, len(src.data))
	}
}
