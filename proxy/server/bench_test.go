package server

import (
	"io"
	"strings"
	"testing"
)

// browser is what a browser sends on a shop's page, 571 bytes.
var browser = strings.Join([]string{
	"GET /seckill/1001/stock?t=1760000000000&source=detail HTTP/1.1",
	"Host: shop.example.com",
	"Connection: keep-alive",
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
	"Accept: application/json, text/plain, */*",
	"Sec-Fetch-Site: same-origin",
	"Sec-Fetch-Mode: cors",
	"Referer: https://shop.example.com/seckill/1001.html",
	"Accept-Encoding: gzip, deflate, br, zstd",
	"Accept-Language: zh-CN,zh;q=0.9,en;q=0.8",
	"Cookie: uid=1234567890; session=0123456789abcdef0123456789abcdef; theme=dark; _ga=GA1.1.1234567890.1760000000",
	"", "",
}, "\r\n")

var order = post(strings.Repeat("sku=1001&n=1&", 20), "Content-Length: 260",
	"Content-Type: application/x-www-form-urlencoded")

// endless is a connection on which s arrives whole, again and again.
type endless struct{ s string }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.s), nil }

func TestReader_ReadsWithoutAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	g := newParser(Limits{Header: 16 << 10, Target: 8 << 10})
	p := make([]byte, 16<<10)
	for name, src := range map[string]io.Reader{
		"get":       endless{browser},
		"post":      endless{order},
		"chunked":   endless{chunked("5\r\nhello\r\n0\r\n\r\n")},
		"absolute":  endless{line("GET http://shop/a HTTP/1.1")},
		"pipelined": endless{strings.Repeat(order, 3)},
		"pieces":    &loop{s: browser, n: 100},
		"order":     &loop{s: order, n: 100},
		"large":     &loop{s: get("A: " + strings.Repeat("b", 9000)), n: 1 << 20},
	} {
		r := g.newReader(src)
		var q Request
		read := func() {
			if err := r.readHead(&q); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for err := error(nil); err != io.EOF; {
				if _, err = r.readBody(p); err != nil && err != io.EOF {
					t.Fatalf("%s: body: %v", name, err)
				}
			}
		}
		read()
		// Under the race detector a sync.Pool forgets at random what it was given.
		if allocs := testing.AllocsPerRun(200, read); allocs != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations a read", name, allocs)
		}
	}
}

func TestReader_ReadsBodiesWithoutAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	for name, src := range map[string]io.Reader{
		"length":         io.MultiReader(strings.NewReader(post("", "Content-Length: 1000000")), endless{"hello"}),
		"chunks":         io.MultiReader(strings.NewReader(chunked("")), endless{"5\r\nhello\r\n"}),
		"chunks, pieces": io.MultiReader(strings.NewReader(chunked("")), &loop{s: "5\r\nhello\r\n", n: 7}),
	} {
		r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(src)
		p := make([]byte, 16<<10)
		readHead(r)
		read := func() {
			if n, err := r.readBody(p); err != nil || n < 1 || n > 5 {
				t.Fatalf("%s: read %d, %v", name, n, err)
			}
		}
		read()
		if allocs := testing.AllocsPerRun(200, read); allocs != 0 {
			t.Errorf("%s: %v allocations a read", name, allocs)
		}
	}
}

func TestReader_DrainsWithoutAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	var q Request
	for name, s := range map[string]string{"post": order, "chunked": chunked("5\r\nhello\r\n0\r\n\r\n")} {
		r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(endless{s})
		read := func() {
			if err := r.readHead(&q); err != nil || !r.drainBody() {
				t.Fatalf("%s: %v", name, err)
			}
		}
		read()
		if allocs := testing.AllocsPerRun(200, read); allocs != 0 {
			t.Errorf("%s: %v allocations a request", name, allocs)
		}
	}
}

func TestReader_WaitsForAChunkWithoutAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(io.MultiReader(strings.NewReader(chunked("")),
		lateReader{}))
	p := make([]byte, 4096)
	readHead(r)
	if allocs := testing.AllocsPerRun(200, func() { r.readBody(p) }); allocs != 0 || len(r.came()) > 0 {
		t.Errorf("%v allocations a time-out, kept %v", allocs, len(r.came()))
	}
}

// loop is a connection on which s arrives in pieces of n bytes, again and again.
type loop struct {
	s  string
	n  int
	at int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p[:min(l.n, len(p))], l.s[l.at:])
	l.at = (l.at + n) % len(l.s)
	return n, nil
}

func bench(b *testing.B, src io.Reader, size int) {
	r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(src)
	p := make([]byte, 16<<10)
	var q Request
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.readHead(&q); err != nil {
			b.Fatal(err)
		}
		for err := error(nil); err != io.EOF; {
			if _, err = r.readBody(p); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkBrowserHead(b *testing.B) { bench(b, endless{browser}, len(browser)) }
func BenchmarkOrder(b *testing.B)       { bench(b, endless{order}, len(order)) }
func BenchmarkPieces(b *testing.B)      { bench(b, &loop{s: browser, n: 100}, len(browser)) }

var upload = chunked(strings.Repeat("1000\r\n"+strings.Repeat("x", 4<<10)+"\r\n", 16) + "0\r\n\r\n")

func BenchmarkUpload(b *testing.B) { bench(b, &loop{s: upload, n: 1 << 20}, len(upload)) }

func BenchmarkDrain(b *testing.B) {
	r := newParser(Limits{Header: 16 << 10, Target: 8 << 10}).newReader(endless{order})
	var q Request
	b.ReportAllocs()
	for b.Loop() {
		if err := r.readHead(&q); err != nil || !r.drainBody() {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipelined(b *testing.B) {
	bench(b, &loop{s: strings.Repeat(browser, 16), n: 1 << 20}, len(browser))
}

func BenchmarkCopyAlone(b *testing.B) { // what the source itself costs
	p := make([]byte, 16<<10)
	b.SetBytes(int64(len(browser)))
	for b.Loop() {
		endless{browser}.Read(p)
	}
}

// BenchmarkReader_SmallChunks reads a body of 100 KB in chunks of one byte.
func BenchmarkReader_SmallChunks(b *testing.B) {
	const size = 100_000
	raw := []byte(chunked(strings.Repeat("1\r\nx\r\n", size) + "0\r\n\r\n"))
	p, whole := make([]byte, usualHead), newParser(Limits{})
	for b.Loop() {
		r := whole.newReader(&pieces{raw, 1 << 20})
		readHead(r)
		for err := error(nil); err == nil; {
			_, err = r.readBody(p)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/size, "ns/chunk")
}
