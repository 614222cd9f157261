package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// poison is what no client and no upstream may ever take for a message: it stands in bodies, and behind responses.
const poison = "HTTP/1.1 200 OK\r\nX-Id: poison\r\nX-Request-Id: poison\r\nContent-Length: 0\r\n\r\n"

// mixupID is the text of a request's number. No other text in a message looks like one.
func mixupID(n uint64) string { return fmt.Sprintf("id%09d", n) }

func mixupNumber(id string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(id, "id")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil && len(digits) == 9
}

// mixupBody is a body of size bytes that says on and on whose it is, and that is a request or response where it is read
// at a wrong place.
func mixupBody(id string, size int) string {
	unit := id + "\r\n\r\nGET /poison?" + id + " HTTP/1.1\r\nHost: s\r\nX-Id: " + id + "\r\n\r\n" + poison
	return strings.Repeat(unit, size/len(unit)+1)[:size]
}

// mixupShape is a form in which the upstream answers.
type mixupShape struct {
	name   string
	status int  // that the client sees
	broken bool // the proxy may answer in its place, or the response may be cut
	ends   bool // the connection carries no other request
	empty  bool // there is no body
	write  func(a *mixupAnswer)
}

// mixupAnswer is one answer of the upstream. Its methods write parts of it.
type mixupAnswer struct {
	net.Conn
	r        *rand.Rand
	fields   string
	body     string
	announce int // length of the body as announced
	toHead   bool
}

func (a *mixupAnswer) say(parts ...string) { _, _ = io.WriteString(a.Conn, strings.Join(parts, "")) }

// length is a head with Content-Length.
func (a *mixupAnswer) length(more ...string) string {
	return "HTTP/1.1 200 OK\r\n" + a.fields + "Content-Length: " + strconv.Itoa(a.announce) + "\r\n" +
		strings.Join(more, "") + "\r\n"
}

// pause lets what was written leave on its own.
func (a *mixupAnswer) pause() {
	time.Sleep(time.Duration(a.r.IntN(2000)) * time.Microsecond) // the model is slow at random
}

// chunks is the body in chunks, up to a part of it; the last chunk ends it.
func (a *mixupAnswer) chunks(body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := 1 + a.r.IntN(len(body))
		extension := []string{"", ";x=y"}[a.r.IntN(2)]
		fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, extension, body[:n])
		body = body[n:]
	}
	return b.String()
}

const chunkedHead = "Transfer-Encoding: chunked\r\n\r\n"

// mixupShapes are all forms. The first is the most frequent one.
var mixupShapes = []mixupShape{
	{name: "length", status: 200, write: func(a *mixupAnswer) { a.say(a.length(), a.body) }},
	{name: "pieces", status: 200, write: func(a *mixupAnswer) {
		a.say(a.length())
		for rest := a.body; len(rest) > 0; {
			n := 1 + a.r.IntN(len(rest))
			a.pause()
			a.say(rest[:n])
			rest = rest[n:]
		}
	}},
	{name: "chunked", status: 200, write: func(a *mixupAnswer) {
		head := "HTTP/1.1 200 OK\r\n" + a.fields + chunkedHead
		if a.toHead {
			a.say(head)
			return
		}
		a.say(head, a.chunks(a.body), []string{"0\r\n\r\n", "0\r\nX-Trailer: poison\r\n\r\n"}[a.r.IntN(2)])
	}},
	{name: "chunked pieces", status: 200, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 200 OK\r\n" + a.fields + chunkedHead)
		if a.toHead {
			return
		}
		all := a.chunks(a.body) + "0\r\n\r\n"
		for len(all) > 0 {
			n := 1 + a.r.IntN(len(all))
			a.pause()
			a.say(all[:n])
			all = all[n:]
		}
	}},
	{name: "until close", status: 200, ends: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 200 OK\r\n"+a.fields+"Connection: close\r\n\r\n", a.body)
	}},
	{name: "HTTP/1.0", status: 200, ends: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.0 200 OK\r\n"+a.fields+"\r\n", a.body)
	}},
	{name: "interim", status: 200, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 103 Early Hints\r\nX-Id: poison\r\n\r\n")
		a.pause()
		a.say("HTTP/1.1 100 Continue\r\n\r\n", a.length(), a.body)
	}},
	{name: "204", status: 204, empty: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 204 No Content\r\n" + a.fields + "\r\n")
	}},
	{name: "304", status: 304, empty: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 304 Not Modified\r\n" + a.fields + "Content-Length: " + strconv.Itoa(a.announce) + "\r\n\r\n")
	}},
	{name: "surplus", status: 200, ends: true, write: func(a *mixupAnswer) { a.say(a.length(), a.body, poison) }},
	{name: "surplus of chunks", status: 200, ends: true, write: func(a *mixupAnswer) {
		head := "HTTP/1.1 200 OK\r\n" + a.fields + chunkedHead
		if a.toHead {
			a.say(head, poison)
			return
		}
		a.say(head, a.chunks(a.body), "0\r\n\r\n", poison)
	}},
	{name: "204 with a body", status: 204, ends: true, empty: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 204 No Content\r\n"+a.fields+"\r\n", poison)
	}},
	{name: "close", status: 200, ends: true, write: func(a *mixupAnswer) {
		a.say(a.length("Connection: close\r\n"), a.body)
	}},
	{name: "unannounced close", status: 200, ends: true, write: func(a *mixupAnswer) { a.say(a.length(), a.body) }},
	{name: "none", status: 502, broken: true, ends: true, write: func(*mixupAnswer) {}},
	{name: "cut length", status: 200, broken: true, ends: true, write: func(a *mixupAnswer) {
		a.say(a.length(), a.body[:len(a.body)/2])
	}},
	{name: "cut chunks", status: 200, broken: true, ends: true, write: func(a *mixupAnswer) {
		a.say("HTTP/1.1 200 OK\r\n" + a.fields + chunkedHead)
		if !a.toHead {
			half := len(a.body) / 2
			a.say(a.chunks(a.body[:half]), "ffff\r\n"+a.body[half:])
		}
	}},
	{name: "early", status: 200, ends: true, write: func(a *mixupAnswer) {
		a.say(a.length("Connection: close\r\n"), a.body)
	}},
}

func mixupShapeNamed(name string) *mixupShape {
	for i := range mixupShapes {
		if mixupShapes[i].name == name {
			return &mixupShapes[i]
		}
	}
	return nil
}

// mixupUpstream answers in all forms that HTTP/1.1 has, and some that it has not. It counts how often each request
// arrived, and reports one whose parts belong to different requests.
type mixupUpstream struct {
	t        *testing.T
	ports    []net.Listener
	arrivals []atomic.Uint32 // by the number of the request
	all      sync.WaitGroup
	seed     uint64

	mu    sync.Mutex
	open  map[net.Conn]bool
	conns uint64
}

// mixupPorts is how many ports the upstream has. The kernel keeps a closed connection for a minute, and has some 28,000
// ports of its own for connections to one address: in a long run they would all be taken.
const mixupPorts = 8

func newMixupUpstream(t *testing.T, seed uint64, most int) *mixupUpstream {
	t.Helper()
	u := &mixupUpstream{t: t, seed: seed, arrivals: make([]atomic.Uint32, most), open: map[net.Conn]bool{}}
	for range mixupPorts {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		u.ports = append(u.ports, ln)
		u.all.Go(func() { u.accept(ln) })
	}
	return u
}

// targets are the addresses of the upstream.
func (u *mixupUpstream) targets() (all []string) {
	for _, ln := range u.ports {
		all = append(all, "http://"+ln.Addr().String())
	}
	return all
}

// accept serves connections to one port.
func (u *mixupUpstream) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.open[c] = true
		u.conns++
		r := rand.New(rand.NewPCG(u.seed, u.conns))
		u.mu.Unlock()
		u.all.Go(func() { u.serve(c, r) })
	}
}

// close ends the listeners and all connections, and waits for them.
func (u *mixupUpstream) close() {
	for _, ln := range u.ports {
		ln.Close()
	}
	u.mu.Lock()
	for c := range u.open {
		c.Close()
	}
	u.mu.Unlock()
	u.all.Wait()
}

func (u *mixupUpstream) serve(c net.Conn, r *rand.Rand) {
	defer func() {
		c.Close()
		u.mu.Lock()
		delete(u.open, c)
		u.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for last := ""; ; {
		req, err := http.ReadRequest(in)
		if err != nil {
			if err != io.EOF && !strings.Contains(err.Error(), "closed") && !strings.Contains(err.Error(), "reset") {
				u.t.Errorf("the upstream read no request: %v", err)
			}
			return
		}
		id, shape := req.Header.Get("X-Id"), mixupShapeNamed(req.Header.Get("X-Shape"))
		if !u.belongsTogether(req, id) || shape == nil {
			u.t.Errorf("the upstream got %s %s with %v", req.Method, req.RequestURI, req.Header)
			return
		}
		if last != "" {
			u.t.Errorf("%s came on a connection that had ended: %s", id, last)
		}
		if shape.name != "early" && !u.readWhole(req, id) {
			return // the client has left within the body
		}
		size, _ := strconv.Atoi(req.Header.Get("X-Size"))
		a := &mixupAnswer{Conn: c, r: r, body: mixupBody(id, size), announce: size, toHead: req.Method == "HEAD",
			fields: "X-Id: " + id + "\r\n"}
		if a.toHead {
			a.body = ""
		}
		shape.write(a)
		switch shape.name {
		case "early":
			_, _ = io.Copy(io.Discard, req.Body) // else the kernel resets the answer away
			return
		case "surplus", "surplus of chunks", "204 with a body", "close":
			last = shape.name // the proxy has to end it
		default:
			if shape.ends {
				return
			}
		}
	}
}

// belongsTogether reports that every part of a request's head says that it is the same request, which is here for the
// first time.
func (u *mixupUpstream) belongsTogether(req *http.Request, id string) bool {
	n, ok := mixupNumber(id)
	if !ok || n >= uint64(len(u.arrivals)) || !strings.HasSuffix(req.RequestURI, "?id="+id) {
		return false
	}
	if ids := req.Header["X-Request-Id"]; len(ids) != 1 || ids[0] != id || len(req.Header["X-Id"]) != 1 {
		return false
	}
	if strings.HasPrefix(req.URL.Path, "/reserve/") {
		if keys := req.Header["Idempotency-Key"]; len(keys) != 1 || keys[0] != "serial-"+id {
			return false
		}
	}
	if u.arrivals[n].Add(1) > 1 {
		u.t.Errorf("%s arrived twice", id)
	}
	return true
}

// readWhole reads the body, which must be the request's own to its last byte. It reports false for one that was cut.
func (u *mixupUpstream) readWhole(req *http.Request, id string) bool {
	body, err := io.ReadAll(req.Body)
	size, _ := strconv.Atoi(req.Header.Get("X-Body"))
	switch {
	case err != nil:
		if !strings.HasPrefix(mixupBody(id, size), string(body)) {
			u.t.Errorf("a part of the body of %s is another's: %.200q", id, body)
		}
		return false
	case string(body) != mixupBody(id, size):
		u.t.Errorf("the body of %s has %d bytes, want %d: %.200q", id, len(body), size, body)
	}
	return true
}
