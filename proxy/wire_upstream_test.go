package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// arrival is a request as an upstream receives it.
type arrival struct {
	method, target, host string
	fields               []string // end-to-end lines in their order, "name: value" without the space around the value
	announced            bool     // there is a Content-Length or Transfer-Encoding
	body                 string
}

// wireUpstream receives requests byte by byte as they stand on the wire, without a parser that repairs them.
type wireUpstream struct {
	addr     string
	arrivals chan arrival
}

func newWireUpstream(t *testing.T) *wireUpstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &wireUpstream{addr: ln.Addr().String(), arrivals: make(chan arrival, 10)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			u.receive(t, c)
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return u
}

// receive reads one request and answers it. The connection ends with the answer.
func (u *wireUpstream) receive(t *testing.T, c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(c)
	a, err := readArrival(in)
	if err != nil {
		t.Errorf("the upstream got no request: %v", err)
		return
	}
	u.arrivals <- a
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	_, _ = io.Copy(io.Discard, in)
}

// readArrival reads a request of which each line ends in CRLF.
func readArrival(in *bufio.Reader) (a arrival, err error) {
	line, err := readLine(in)
	if line == "" && err == nil {
		line, err = readLine(in) // RFC 9112, section 2.2
	}
	if err != nil {
		return a, err
	}
	a.method, line, _ = strings.Cut(line, " ")
	a.target = line[:max(strings.LastIndexByte(line, ' '), 0)]
	length, chunked := 0, false
	for {
		line, err := readLine(in)
		if err != nil {
			return a, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch strings.ToLower(name) {
		case "host":
			a.host = value
		case "content-length":
			a.announced = true
			if length, err = strconv.Atoi(value); err != nil {
				return a, err
			}
		case "transfer-encoding":
			a.announced, chunked = true, true
		default:
			a.fields = append(a.fields, name+": "+value)
		}
	}
	if !chunked {
		body := make([]byte, length)
		_, err = io.ReadFull(in, body)
		a.body = string(body)
		return a, err
	}
	a.body, err = readChunks(in)
	return a, err
}

func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	text, whole := strings.CutSuffix(line, "\r\n")
	if err == nil && !whole {
		err = fmt.Errorf("bare LF behind %.100q", line)
	}
	return text, err
}

func readChunks(in *bufio.Reader) (body string, err error) {
	var all strings.Builder
	for {
		line, err := readLine(in)
		if err != nil {
			return "", err
		}
		size, err := strconv.ParseInt(line, 16, 32)
		if err != nil {
			return "", err
		}
		if _, err := io.CopyN(&all, in, size); err != nil {
			return "", err
		}
		if end, err := readLine(in); err != nil || end != "" {
			return "", fmt.Errorf("behind a chunk: %.100q, %w", end, err)
		}
		if size == 0 {
			return all.String(), nil
		}
	}
}

// keptBack are fields about one connection (RFC 9110, section 7.6.1, and docs/http.md). Framing is compared apart.
var keptBack = []string{"connection", "keep-alive", "proxy-connection", "te", "expect"}

// addedFields are the lines that the proxy adds, from its first to its last.
var addedFields = []string{"X-Request-Id", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via"}

// fieldName is the name of a line.
func fieldName(line string) string { return line[:strings.IndexByte(line, ':')] }

// endToEnd removes the fields that are about one connection, those that Connection names included.
func (a *arrival) endToEnd() {
	hop := slices.Clone(keptBack)
	for _, line := range a.fields {
		if !strings.EqualFold(fieldName(line), "Connection") {
			continue
		}
		for option := range strings.SplitSeq(line[len("Connection:"):], ",") {
			option = strings.ToLower(strings.TrimSpace(option))
			if option != "upgrade" { // which is forwarded as the proxy's own
				hop = append(hop, option)
			}
		}
	}
	a.fields = slices.DeleteFunc(a.fields, func(line string) bool {
		return slices.Contains(hop, strings.ToLower(fieldName(line)))
	})
}

// moveLast puts the lines of a name behind all others: where they stand among lines of other names means nothing.
func moveLast(fields []string, name string) []string {
	var last []string
	rest := slices.DeleteFunc(slices.Clone(fields), func(line string) bool {
		if !strings.EqualFold(fieldName(line), name) {
			return false
		}
		last = append(last, line)
		return true
	})
	return append(rest, last...)
}

// lastOnes puts those lines last that the proxy moves.
func lastOnes(fields []string) []string {
	for _, name := range []string{"X-Request-Id", "Via", "Upgrade"} {
		fields = moveLast(fields, name)
	}
	return fields
}

// without removes all lines of a name.
func without(fields []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(line string) bool {
		return strings.EqualFold(fieldName(line), name)
	})
}
