package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// serve answers the requests of a connection. It reads their bodies, but on /unread and /drained, and notes what it
// read.
func answerAll(conn net.Conn, seen *[]string) {
	r, p := newParser(small).newReader(conn), make([]byte, 512)
	var q Request
	for {
		err := r.readHead(&q)
		content := ""
		switch path := string(q.Target); {
		case err != nil, path == "/unread":
		case path == "/drained":
			r.drainBody()
		default:
			content, err = readAll(r, p)
		}
		v, broken := errors.AsType[ProtocolError](err)
		switch {
		case broken:
			fmt.Fprintf(conn, "HTTP/1.1 %d No\r\n\r\n%s", v.Status, v.Rule)
			return
		case err == io.EOF:
			return
		case err != nil:
			fmt.Fprintf(conn, "HTTP/1.1 418 Cut Short\r\n\r\n")
			return
		}
		*seen = append(*seen, string(q.Target)+" "+content)
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n")
	}
}

// exchange sends raw over TCP to a server behind the guard. It returns all that comes back until the server closes,
// and what it read.
func converseRaw(t *testing.T, raw string) (answer string, seen []string) {
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
	answerAll(conn, &seen)
	conn.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	return string(all), seen
}

func TestReader_ReadsPipelinedRequestsOneByOne(t *testing.T) {
	answer, seen := converseRaw(t, post("hello",
		"Content-Length: 5")+chunked("5\r\nworld\r\n0\r\n\r\n")+get()+line("GET http://shop/b HTTP/1.1"))
	if want := []string{"/a hello", "/a world", "/a ", "http://shop/b "}; !slices.Equal(seen, want) {
		t.Fatalf("handler saw %q, want %q", seen, want)
	}
	if n := strings.Count(answer, "HTTP/1.1 200 OK\r\n"); n != 4 {
		t.Fatalf("%d answers in %q", n, answer)
	}
}

func TestReader_RejectsAHeadBehindOthers(t *testing.T) {
	bad := line("TRACE / HTTP/1.1")
	for before, raw := range []string{bad, get() + bad, get() + get() + bad} {
		answer, seen := converseRaw(t, raw)
		if len(seen) != before || !strings.Contains(answer, "HTTP/1.1 405 ") || !strings.HasSuffix(answer, "trace") {
			t.Errorf("after %d requests: handler saw %q, client got %q", before, seen, answer)
		}
		if n := strings.Count(answer, "HTTP/1.1 "); n != before+1 {
			t.Errorf("after %d requests: %d answers", before, n)
		}
	}
}

func TestReader_UnreadBodyReachesNoHandler(t *testing.T) {
	smuggled := line("GET /smuggled HTTP/1.1")
	fields := "Host: shop\r\nContent-Length: " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled
	for raw, want := range map[string][]string{
		"POST /unread HTTP/1.1\r\n" + fields:  {"/unread "},
		"POST /drained HTTP/1.1\r\n" + fields: {"/drained ", "/a "}, // the body has come along with its head
	} {
		answer, seen := converseRaw(t, raw+get())
		if !slices.Equal(seen, want) || strings.Count(answer, "HTTP/1.1 200 OK\r\n") != len(want) || strings.Count(answer,
			"HTTP/1.1 ") != len(want) {
			t.Errorf("%q: handler saw %q, client got %q", raw, seen, answer)
		}
	}
}

func TestReader_BrokenBodyIsNeverWhole(t *testing.T) {
	size := strings.Repeat("x", 9000)
	for raw, want := range map[string]string{
		chunked("5;\r\nhello\r\n0\r\n\r\n" + get()):                                       "400 No\r\n\r\nchunk_extension",
		chunked("5\r\nhello\r\n2328\r\n" + size + "\r\n5;\r\nhello\r\n0\r\n\r\n" + get()): "400 No\r\n\r\nchunk_extension",
		// in a later piece
		chunked("2328\r\n" + size + "\r\n0\r\nA: b\r\n\r\n"): "400 No\r\n\r\ntrailer",
		chunked("2328\r\n" + size):                           "418 Cut Short\r\n\r\n",
		chunked("2328\r\n" + size + "\r\n0"):                 "418 Cut Short\r\n\r\n",
		chunked("2328\r\n" + size + "\r\n0\r\n"):             "418 Cut Short\r\n\r\n",
		chunked("2328\r\n" + size + "\r\n0\r\n\r"):           "418 Cut Short\r\n\r\n",
		post("hell", "Content-Length: 5"):                    "418 Cut Short\r\n\r\n",
		post(size, "Content-Length: 9001"):                   "418 Cut Short\r\n\r\n",
	} {
		if answer, seen := converseRaw(t, raw); len(seen) != 0 || answer != "HTTP/1.1 "+want {
			t.Errorf("%.90q: handler saw %d requests, client got %q", raw, len(seen), answer)
		}
	}
}
