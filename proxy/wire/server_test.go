package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// guarded is a connection whose reads pass the guard.
type guarded struct {
	net.Conn
	r *Reader
}

func (c guarded) Read(p []byte) (int, error) { return c.r.Read(p) }

// fasthttpServer serves behind the guard, and notes what its handler read.
func fasthttpServer(seen *[]string) *fasthttp.Server {
	return &fasthttp.Server{
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			var body []byte
			if stream := ctx.RequestBodyStream(); stream != nil {
				var err error
				if body, err = io.ReadAll(stream); err != nil {
					ctx.Error("cut short", fasthttp.StatusTeapot)
					ctx.SetConnectionClose()
					return
				}
			}
			*seen = append(*seen, string(ctx.RequestURI())+" "+string(body))
		},
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			if v, ok := errors.AsType[Violation](err); ok {
				ctx.Error(v.Kind.String(), v.Status)
				return
			}
			ctx.Error("cut short", fasthttp.StatusTeapot)
		},
	}
}

// exchange sends raw over TCP to fasthttp behind the guard. It returns all that comes back until the server closes,
// and what the handler read.
func exchange(t *testing.T, raw string) (answer string, seen []string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(client, raw); err != nil {
		t.Fatal(err)
	}
	client.(*net.TCPConn).CloseWrite()
	fasthttpServer(&seen).ServeConn(guarded{conn, NewGuard(small).NewReader(conn)})
	conn.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	return string(all), seen
}

func TestServerReadsPipelinedRequestsOneByOne(t *testing.T) {
	answer, seen := exchange(t, post("hello", "Content-Length: 5")+chunked("5\r\nworld\r\n0\r\n\r\n")+get()+line("GET http://shop/b HTTP/1.1"))
	if want := []string{"/a hello", "/a world", "/a ", "/b "}; !slices.Equal(seen, want) {
		t.Fatalf("handler saw %q, want %q", seen, want)
	}
	if n := strings.Count(answer, "HTTP/1.1 200 OK\r\n"); n != 4 {
		t.Fatalf("%d answers in %q", n, answer)
	}
}

func TestRefusedHeadIsAnsweredOnAKeptAliveConnectionToo(t *testing.T) {
	bad := line("TRACE / HTTP/1.1")
	for before, raw := range []string{bad, get() + bad, get() + get() + bad} {
		answer, seen := exchange(t, raw)
		if len(seen) != before || !strings.Contains(answer, "HTTP/1.1 405 ") || !strings.HasSuffix(answer, "trace") {
			t.Errorf("after %d requests: handler saw %q, client got %q", before, seen, answer)
		}
		if n := strings.Count(answer, "HTTP/1.1 "); n != before+1 {
			t.Errorf("after %d requests: %d answers", before, n)
		}
	}
}

func TestBodyThatBreaksARuleIsNeverTakenForAWholeOne(t *testing.T) {
	size := strings.Repeat("x", 9000)
	for _, raw := range []string{
		chunked("5\r\nhello\r\n2328\r\n" + size + "\r\n5;\r\nhello\r\n0\r\n\r\n" + get()), // the violation is in a later piece
		chunked("2328\r\n" + size + "\r\n0\r\nA: b\r\n\r\n"),
		chunked("2328\r\n" + size),
		chunked("2328\r\n" + size + "\r\n0"),
		chunked("2328\r\n" + size + "\r\n0\r\n"),
		chunked("2328\r\n" + size + "\r\n0\r\n\r"),
		post("hell", "Content-Length: 5"),
		post(size, "Content-Length: 9001"),
	} {
		answer, seen := exchange(t, raw)
		if len(seen) != 0 || strings.Count(answer, "HTTP/1.1 418 ") != 1 || strings.Count(answer, "HTTP/1.1 ") != 1 {
			t.Errorf("%.90q: handler saw %d requests, client got %q", raw, len(seen), answer)
		}
	}
}
