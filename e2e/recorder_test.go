package e2e

import (
	"bytes"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a shop that writes down every byte that reaches it, and judges it more strictly than any server would:
// what is not canonical may be read in two ways. It answers each canonical request, says that this was the
// last one, and listens on until the other side ends the connection.
type recorder struct {
	address string
	mu      sync.Mutex
	conns   []*hearing
}

// hearing is one connection to a recorder.
type hearing struct {
	text []byte
	over bool
}

// record starts a recorder for the length of the test.
func record(t *testing.T) *recorder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{address: ln.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { ln.Close() })
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			h := &hearing{}
			r.mu.Lock()
			r.conns = append(r.conns, h)
			r.mu.Unlock()
			all.Go(func() { r.listen(c, h) })
		}
	})
	return r
}

func (r *recorder) listen(c net.Conn, h *hearing) {
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(long))
	answered := 0
	for room := make([]byte, 64<<10); ; {
		n, err := c.Read(room)
		r.mu.Lock()
		h.text = append(h.text, room[:n]...)
		h.over = err != nil
		heard, _ := strict(h.text)
		r.mu.Unlock()
		if err != nil {
			return
		}
		for ; answered < len(heard); answered++ {
			line := heard[answered].line
			length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(line), line)
			if strings.HasPrefix(line, "HEAD ") {
				length = "Content-Length: 5\r\n\r\n"
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nServed: %s\r\n%s", line, length)
		}
	}
}

// took says what has come since it was asked last, in the order of arrival, as soon as every connection has ended.
func (r *recorder) took(t *testing.T) string {
	t.Helper()
	last, err := net.Dial("tcp", r.address) // behind all others in the kernel's queue
	if err != nil {
		t.Fatal(err)
	}
	last.Close()
	var ended []*hearing
	for start := time.Now(); ended == nil; time.Sleep(time.Millisecond) { // between two looks
		if time.Since(start) > long {
			t.Fatal("waited in vain until all connections to the shop were closed")
		}
		ended = r.ended()
	}
	var all []string
	for _, h := range ended {
		all = append(all, told(h.text)...)
	}
	return strings.Join(all, ", ")
}

// ended takes the connections away if all of them are over, and the last one came without a byte.
func (r *recorder) ended() (all []*hearing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.conns)
	if n == 0 || len(r.conns[n-1].text) > 0 {
		return nil
	}
	for _, h := range r.conns {
		if !h.over {
			return nil
		}
	}
	all, r.conns = r.conns, nil
	return all
}

// told describes the bytes of one connection: "POST /a 5" is a canonical request with 5 bytes of content.
func told(text []byte) (all []string) {
	heard, rest := strict(text)
	for _, m := range heard {
		if m.line == "GET /probe" {
			continue
		}
		if m.length > 0 {
			m.line += " " + strconv.Itoa(m.length)
		}
		all = append(all, m.line)
	}
	if len(rest) > 0 {
		all = append(all, fmt.Sprintf("NOT CANONICAL %.40q", rest))
	}
	return all
}

// message is a canonical request.
type message struct {
	line   string // method and target
	length int    // bytes of content
}

// The grammar that leaves no room for a second reading: RFC 9112 without everything that it allows a recipient to
// repair.
var (
	requestLine = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+ [\x21-\x7e]+) HTTP/1\.1$`)
	fieldLine   = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*$`)
	lengthValue = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`)
	chunkSize   = regexp.MustCompile(`^[0-9A-Fa-f]{1,15}$`)
)

// strict cuts canonical requests from the front of text; rest is what is none, or not whole.
func strict(text []byte) (all []message, rest []byte) {
	for len(text) > 0 {
		head, body, whole := bytes.Cut(text, []byte("\r\n\r\n"))
		if !whole {
			break
		}
		m, fields, ok := strictHead(string(head))
		if !ok {
			break
		}
		switch coding, length := fields["transfer-encoding"], fields["content-length"]; {
		case len(fields["host"]) != 1:
			return all, text
		case coding == nil && length == nil:
		case coding == nil && len(length) == 1 && lengthValue.MatchString(length[0]):
			m.length, _ = strconv.Atoi(length[0])
			if m.length > len(body) {
				return all, text
			}
			body = body[m.length:]
		case length == nil && len(coding) == 1 && coding[0] == "chunked":
			if m.length, body, ok = strictChunks(body); !ok {
				return all, text
			}
		default:
			return all, text
		}
		all, text = append(all, m), body
	}
	return all, text
}

func strictHead(head string) (m message, fields map[string][]string, ok bool) {
	lines := strings.Split(head, "\r\n")
	first := requestLine.FindStringSubmatch(lines[0])
	if first == nil {
		return m, nil, false
	}
	fields = map[string][]string{}
	for _, l := range lines[1:] {
		f := fieldLine.FindStringSubmatch(l)
		if f == nil {
			return m, nil, false
		}
		name := strings.ToLower(f[1])
		switch strings.ReplaceAll(name, "_", "-") {
		case "transfer-encoding", "content-length", "host":
			if strings.Contains(name, "_") {
				return m, nil, false
			}
		}
		fields[name] = append(fields[name], f[2])
	}
	return message{line: first[1]}, fields, true
}

func strictChunks(body []byte) (length int, rest []byte, ok bool) {
	for {
		line, after, whole := bytes.Cut(body, []byte("\r\n"))
		if !whole || !chunkSize.Match(line) {
			return 0, nil, false
		}
		size, _ := strconv.ParseInt(string(line), 16, 64)
		if size > int64(len(after))-2 || string(after[size:size+2]) != "\r\n" {
			return 0, nil, false
		}
		if body = after[size+2:]; size == 0 {
			return length, body, true
		}
		length += int(size)
	}
}
