package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"
)

func seed(f *testing.F) {
	for _, raw := range every() {
		f.Add([]byte(raw), uint8(5))
	}
}

// FuzzPieces: whatever the pieces, heads, content and verdict are the same, and nothing panics.
func FuzzPieces(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		want := play(small, data, 1<<20, 4096)
		for _, way := range [][2]int{{1, 4096}, {int(n) + 1, 4096}, {int(n) + 1, 1 + int(n)/7}} {
			if got := play(small, data, way[0], way[1]); !got.equal(want) {
				t.Fatalf("pieces of %d, read by %d: %+v, want %+v", way[0], way[1], got, want)
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

func agree(t *testing.T, limits Limits, data []byte, n int) referred {
	t.Helper()
	got := play(limits, data, n, 4096)
	want := reference(limits, string(data))
	if !slices.Equal(got.whole, want.whole) || got.begun != want.begun || (got.err == io.EOF) != want.clean {
		t.Fatalf("%q: %+v, but by the reference %+v", data, got, want)
	}
	return want
}

// FuzzServer: fasthttp, net/http and the look agree on every request that is handed on: on method, target, Host, the
// list of fields, and the body to its last byte.
func FuzzServer(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		got := play(small, data, int(n)+1, 4096)
		bodies := reference(small, string(data)).bodies
		for i := range got.whole {
			got.parsed(t, i, bodies[i])
		}
	})
}

// FuzzDrain: a body that is given up, from whatever place in it, never puts the next head elsewhere, and is not
// waited for.
func FuzzDrain(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		want := play(small, data, 1<<20, 4096)
		draining := false
		src := &pieces{bytes.Clone(data), int(n)*5 + 1}
		r := newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
			if draining {
				t.Fatalf("%q: waited for what was given up", data)
			}
			return src.Read(p)
		}))
		p := make([]byte, 4096)
		for i := 0; ; i++ {
			head, err := readHead(r)
			if err != nil {
				return
			}
			if i > len(want.whole) || i == len(want.whole) && head != want.begun.head || i < len(want.whole) &&
				head != want.whole[i].head {
				t.Fatalf("%q: head %d is %q, want those of %+v", data, i, head, want)
			}
			r.readBody(p[:n%8])
			draining = true
			r.drainBody()
			draining = false
		}
	})
}

// TestParser_ConformanceCorpus reads raw requests from the file that SLUICE_CONFORMANCE names, one JSON object with
// "id" and "b64" a line, and checks that what is handed on is canonical, however it arrives.
func TestParser_ConformanceCorpus(t *testing.T) {
	path := os.Getenv("SLUICE_CONFORMANCE")
	if path == "" {
		t.Skip("set SLUICE_CONFORMANCE to a cases.jsonl to run this")
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{Header: 16 << 10, Target: 8 << 10}
	whole, rejected := 0, map[string]int{}
	for line := range bytes.Lines(file) {
		var c struct{ ID, B64 string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(c.B64)
		if err != nil {
			t.Fatal(err)
		}
		var ref referred
		for _, n := range []int{1, 10, 1 << 20} {
			ref = agree(t, limits, raw, n)
		}
		got := play(limits, raw, 1<<20, 16<<10)
		for i := range got.whole {
			got.parsed(t, i, ref.bodies[i])
			whole++
		}
		if got.err != io.EOF {
			rejected[got.err.Error()]++
		}
	}
	t.Logf("%d requests went on; rejected: %v", whole, rejected)
}
