package wire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func seed(f *testing.F) {
	for _, raw := range every() {
		f.Add([]byte(raw), uint8(5))
	}
}

// FuzzPieces: whatever the pieces, the verdict is the same, and nothing panics.
func FuzzPieces(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		want := play(small, data, 1<<20, 4096)
		for _, way := range [][2]int{{1, 4096}, {int(n) + 1, 4096}, {int(n) + 1, 1 + int(n)/7}} {
			got := play(small, data, way[0], way[1])
			if got.err != want.err || !slices.Equal(got.whole, want.whole) || !slices.Equal(got.heads, want.heads) {
				t.Fatalf("pieces of %d, read by %d: %q then %v, want %q then %v", way[0], way[1], got.whole, got.err, want.whole, want.err)
			}
		}
	})
}

// FuzzReference: the fast law and the slow one agree.
func FuzzReference(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		agree(t, small, data, int(n)+1)
	})
}

func agree(t *testing.T, limits Limits, data []byte, n int) {
	t.Helper()
	got := play(limits, data, n, 4096)
	whole, clean := reference(limits, string(data))
	if !slices.Equal(got.whole, whole) || (got.err == io.EOF) != clean {
		t.Fatalf("%q: %q then %v, but by the reference %q, clean %v", data, got.whole, got.err, whole, clean)
	}
}

// FuzzServer: fasthttp reads every request that is handed on as it was judged, and to the same last byte.
func FuzzServer(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		got := play(small, data, int(n)+1, 4096)
		for i, raw := range got.whole {
			parsed(t, raw, got.heads[i])
		}
	})
}

var hostLineRE = regexp.MustCompile(`(?i)\r\nhost:([ -~\t]*)\r\n`)

func parsed(t *testing.T, raw string, head Head) {
	t.Helper()
	src := strings.NewReader(raw)
	br := bufio.NewReaderSize(src, 4096)
	var req fasthttp.Request
	if err := req.Header.Read(br); err != nil {
		t.Fatalf("%q: fasthttp: %v", raw, err)
	}
	m := requestLineRE.FindStringSubmatch(raw[:strings.Index(raw, "\r\n")])
	host := strings.Trim(hostLineRE.FindStringSubmatch(raw)[1], " \t")
	if h := &req.Header; string(h.Method()) != m[1] || string(h.RequestURI()) != m[2] || string(h.Host()) != host {
		t.Fatalf("%q: fasthttp reads %q %q for host %q", raw, h.Method(), h.RequestURI(), h.Host())
	}
	if string(req.URI().Host()) != strings.ToLower(host) {
		t.Fatalf("%q: fasthttp reads the URI's host as %q", raw, req.URI().Host())
	}
	if req.MayContinue() != head.Expect100 || req.Header.IsHTTP11() == head.HTTP10 {
		t.Fatalf("%q: fasthttp's expectation or version differs from %+v", raw, head)
	}
	length := req.Header.ContentLength() // -1 chunked, -2 none
	if head.Chunked != (length == -1) || !head.Chunked && max(length, -1) != int(head.ContentLength) {
		t.Fatalf("%q: fasthttp's length %d differs from %+v", raw, length, head)
	}
	if head.Chunked && longSize(raw) {
		return // 16 digits are lawful, and refused by fasthttp: no harm
	}
	if length != -2 {
		if err := req.ReadBody(br, length, 1<<20); err != nil {
			t.Fatalf("%q: fasthttp's body: %v", raw, err)
		}
	}
	if head.Chunked {
		if err := req.Header.ReadTrailer(br); err != nil {
			t.Fatalf("%q: fasthttp's trailer: %v", raw, err)
		}
	}
	if left := br.Buffered() + src.Len(); left != 0 {
		t.Fatalf("%q: fasthttp leaves %d bytes", raw, left)
	}
}

// longSize reports whether a chunk size may have 16 digits.
func longSize(raw string) bool {
	digits := 0
	for i := range len(raw) {
		if classes[raw[i]]&hexByte == 0 {
			digits = 0
		} else if digits++; digits == 16 {
			return true
		}
	}
	return false
}

// TestConformanceCorpus reads raw requests from the file that SLUICE_CONFORMANCE names, one JSON object with "id" and
// "b64" a line, and checks that what is handed on is canonical, however it arrives.
func TestConformanceCorpus(t *testing.T) {
	path := os.Getenv("SLUICE_CONFORMANCE")
	if path == "" {
		t.Skip("set SLUICE_CONFORMANCE to a cases.jsonl to run this")
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{Header: 16 << 10, Target: 8 << 10}
	whole, refused := 0, map[string]int{}
	for line := range bytes.Lines(file) {
		var c struct{ ID, B64 string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(c.B64)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 10, 1 << 20} {
			agree(t, limits, raw, n)
		}
		got := play(limits, raw, 1<<20, 16<<10)
		for i, message := range got.whole {
			parsed(t, message, got.heads[i])
			whole++
		}
		if got.err != io.EOF {
			refused[got.err.Error()]++
		}
	}
	t.Logf("%d requests went on; refused: %v", whole, refused)
}
