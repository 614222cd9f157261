package upstream

import (
	"bytes"
	"testing"
)

// FuzzHead holds the copy that parse makes in passing against the one that goes through the fields again, which keeps
// each rule by itself; and the look at eight bytes at a time against the look at each.
func FuzzHead(f *testing.F) {
	for _, said := range poisons {
		f.Add([]byte(said))
	}
	for _, said := range doubtful {
		f.Add([]byte(said))
	}
	for _, said := range []string{
		smallAnswer,
		"HTTP/1.0 200\r\nA:b\r\nC:\td \r\nConnection: c\r\n\r\n",
		"HTTP/1.1 204 \r\nContent-Length: 0\r\nETag: \"\xff\"\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: a\r\nX-A: 12345678\t\r\ncontent-encoding: b\r\n\r\n",
	} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		if isText(said) != isPlain(said) {
			t.Fatalf("isText(%q) is %v", said, isText(said))
		}
		in := inbox{buf: said, w: len(said), fault: errTooLong}
		raw, err := in.head()
		if err != nil {
			return
		}
		came := bytes.Clone(raw)
		var h head
		if !h.parse(raw, []byte("what was here before")) {
			return
		}
		if want := h.appendKept(nil); !bytes.Equal(h.kept, want) {
			t.Fatalf("%q is copied as\n%q, want\n%q", raw, h.kept, want)
		}
		if !bytes.Equal(raw, came) {
			t.Fatalf("%q became %q", came, raw)
		}
	})
}
