package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// guarded is a connection whose reads pass the guard. It is closed by whoever made it, once the client has read all:
// closing with input unread would reset the answer away.
type guarded struct {
	net.Conn
	r *Reader
}

func (c guarded) Read(p []byte) (int, error) { return c.r.Read(p) }
func (c guarded) Close() error               { return nil }

// headOnly hides the body from the server.
func headOnly(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if h.ContentLength() != 0 {
		h.SetContentLength(0)
	}
	h.Del("Expect")
	return c
}

// fasthttpServer serves heads behind the guard. Its handler reads the bodies itself, but on /unread and /drained, and
// notes what it read.
func fasthttpServer(seen *[]string) *fasthttp.Server {
	return &fasthttp.Server{
		DisablePreParseMultipartForm: true,
		HeaderReceived:               headOnly,
		Handler: func(ctx *fasthttp.RequestCtx) {
			r, content := ctx.Conn().(guarded).r, ""
			switch path := string(ctx.Path()); path {
			case "/unread":
			case "/drained":
				r.DrainBody()
			default:
				var err error
				if content, err = readAll(r, make([]byte, 512)); err != nil {
					ctx.Error(err.Error(), fasthttp.StatusTeapot)
					ctx.SetConnectionClose()
					return
				}
			}
			*seen = append(*seen, string(ctx.RequestURI())+" "+content+string(ctx.PostBody()))
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

func TestUnreadBodyReachesNoHandler(t *testing.T) {
	smuggled := line("GET /smuggled HTTP/1.1")
	fields := "Host: shop\r\nContent-Length: " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled
	for raw, want := range map[string][]string{
		"POST /unread HTTP/1.1\r\n" + fields:  {"/unread "},
		"POST /drained HTTP/1.1\r\n" + fields: {"/drained ", "/a "}, // the body has come along with its head
	} {
		answer, seen := exchange(t, raw+get())
		if !slices.Equal(seen, want) || strings.Count(answer, "HTTP/1.1 200 OK\r\n") != len(want) || strings.Count(answer, "HTTP/1.1 ") != len(want) {
			t.Errorf("%q: handler saw %q, client got %q", raw, seen, answer)
		}
	}
}

func TestBodyThatBreaksARuleIsNeverTakenForAWholeOne(t *testing.T) {
	size := strings.Repeat("x", 9000)
	for raw, want := range map[string]error{
		chunked("5;\r\nhello\r\n0\r\n\r\n" + get()):                                       chunkExtension.violation(),
		chunked("5\r\nhello\r\n2328\r\n" + size + "\r\n5;\r\nhello\r\n0\r\n\r\n" + get()): chunkExtension.violation(), // in a later piece
		chunked("2328\r\n" + size + "\r\n0\r\nA: b\r\n\r\n"):                              trailer.violation(),
		chunked("2328\r\n" + size):                                                        io.ErrUnexpectedEOF,
		chunked("2328\r\n" + size + "\r\n0"):                                              io.ErrUnexpectedEOF,
		chunked("2328\r\n" + size + "\r\n0\r\n"):                                          io.ErrUnexpectedEOF,
		chunked("2328\r\n" + size + "\r\n0\r\n\r"):                                        io.ErrUnexpectedEOF,
		post("hell", "Content-Length: 5"):                                                 io.ErrUnexpectedEOF,
		post(size, "Content-Length: 9001"):                                                io.ErrUnexpectedEOF,
	} {
		answer, seen := exchange(t, raw)
		if len(seen) != 0 || !strings.HasPrefix(answer, "HTTP/1.1 418 ") || strings.Count(answer, "HTTP/1.1 ") != 1 || !strings.HasSuffix(answer, want.Error()) {
			t.Errorf("%.90q: handler saw %d requests, client got %q", raw, len(seen), answer)
		}
	}
}
