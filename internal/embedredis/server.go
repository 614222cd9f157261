// Package embedredis is a Redis in this process: miniredis behind pipes, with a Lua engine that is fast enough for the
// ledger's scripts. It opens no port.
//
// It promises one command at a time, a script whole, and keys that expire. It keeps nothing when it is closed, and has
// no replicas and no cluster.
package embedredis

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Server is one Redis. It is safe for concurrent use, but for Run.
type Server struct {
	*miniredis.Miniredis
	scripts  *Scripts
	commands *server.Server
	runID    string

	mu      sync.Mutex
	clients map[net.Conn]bool // nil = it is closed
	running sync.WaitGroup
}

// shared has the scripts of all servers of Start: each is compiled once.
var shared = sync.OnceValue(NewScripts)

// Start starts a server that Dial reaches. The caller must Stop it.
func Start() *Server {
	s := New(shared(), "embedded")
	s.ClockTTL(true)
	return s
}

// New returns a server whose commands its caller runs, by Run. INFO tells its run id.
func New(scripts *Scripts, runID string) *Server {
	s := &Server{Miniredis: miniredis.NewMiniRedis(), scripts: scripts, runID: runID, clients: make(map[net.Conn]bool)}
	if c, err := s.Miniredis.Dial(); err == nil { // starts it
		c.Close()
	}
	s.commands = s.Miniredis.Server()
	return s
}

// Run runs a command, and reports whether it may have changed something. The caller holds the lock of the scripts.
// What miniredis lacks is here: INFO, and XGROUP SETID, which matters to nothing that runs in one process.
func (s *Server) Run(c *server.Peer, args []string) (changed bool) {
	switch cmd := strings.ToUpper(args[0]); {
	case cmd == "SCRIPT" && len(args) == 3 && strings.EqualFold(args[1], "LOAD"):
		if sha, err := s.scripts.load(args[2]); err != nil {
			c.WriteError("ERR Error compiling script: " + err.Error())
		} else {
			c.WriteBulk(sha)
		}
		return false
	case len(args) > 2 && (cmd == "EVALSHA" || cmd == "EVALSHA_RO"):
		s.scripts.eval(s, c, args[1:])
		return s.scripts.wrote
	case len(args) > 2 && (cmd == "EVAL" || cmd == "EVAL_RO"):
		sha, err := s.scripts.load(args[1])
		if err != nil {
			c.WriteError("ERR Error compiling script: " + err.Error())
			return false
		}
		args[1] = sha
		s.scripts.eval(s, c, args[1:])
		return s.scripts.wrote
	case cmd == "XGROUP" && len(args) > 1 && strings.EqualFold(args[1], "SETID"):
		c.WriteOK()
		return false
	case cmd == "INFO":
		c.WriteBulk("run_id:" + s.runID + "\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n")
		return false
	}
	s.commands.Dispatch(c, args)
	return s.Changes(args[0])
}

// Changes reports whether a command may change something.
func (s *Server) Changes(cmd string) bool {
	switch cmd = strings.ToUpper(cmd); cmd {
	case "HELLO", "PING", "CLIENT", "SUBSCRIBE", "UNSUBSCRIBE", "PUBLISH", "TIME", "XINFO", "SELECT", "AUTH":
		return false
	}
	return !s.IsReadOnlyCommand(cmd)
}

// Leave ends what a client has subscribed to. The caller holds the lock of the scripts.
func (s *Server) Leave(c *server.Peer) { s.commands.Dispatch(c, []string{"UNSUBSCRIBE"}) }

// Dial opens a connection to the server: it is the dialer of a client, and the address does not matter.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		return nil, net.ErrClosed
	}
	near, far := net.Pipe()
	s.clients[far] = true
	out := newReplies()
	s.running.Go(func() { s.serve(far, out) })
	s.running.Go(func() { out.writeTo(far) })
	return near, nil
}

// serve runs the commands of one connection.
func (s *Server) serve(c net.Conn, out *replies) {
	peer, in := server.NewPeer(bufio.NewWriter(out)), bufio.NewReader(c)
	for room := []byte(nil); ; {
		args, err := s.scripts.ReadCommand(in, &room)
		if err != nil || len(args) == 0 {
			break
		}
		s.scripts.Lock()
		s.Run(peer, args)
		s.scripts.Unlock()
		peer.Flush()
	}
	s.scripts.Lock()
	s.Leave(peer)
	s.scripts.Unlock()
	out.close()
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// Stop closes all connections and forgets everything.
func (s *Server) Stop() {
	s.mu.Lock()
	for c := range s.clients {
		c.Close()
	}
	s.clients = nil
	s.mu.Unlock()
	s.running.Wait()
	s.Miniredis.Close()
}

// replies are on their way to a client. The server never waits for it: a pipe has no room, and a client reads no reply
// before it has written all of a pipeline.
type replies struct {
	mu     sync.Mutex
	more   sync.Cond
	bytes  []byte
	closed bool
}

func newReplies() *replies {
	r := &replies{}
	r.more.L = &r.mu
	return r
}

// Write implements io.Writer.
func (r *replies) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = append(r.bytes, p...)
	r.more.Signal()
	return len(p), nil
}

func (r *replies) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.more.Signal()
}

// writeTo sends replies until the connection is closed.
func (r *replies) writeTo(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.bytes) == 0 && !r.closed {
			r.more.Wait()
		}
		if r.closed {
			return
		}
		some := bytes.Clone(r.bytes)
		r.bytes = r.bytes[:0]
		r.mu.Unlock()
		_, err := c.Write(some)
		r.mu.Lock()
		if err != nil {
			c.Close()
			return
		}
	}
}

// ReadCommand reads an array of bulk strings, in room.
func (s *Scripts) ReadCommand(r *bufio.Reader, room *[]byte) ([]string, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		length, err := readLength(r)
		if err != nil {
			return nil, err
		}
		if cap(*room) < length+2 {
			*room = make([]byte, length+2)
		}
		text := (*room)[:length+2]
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = s.text(text[:length])
	}
	return args, nil
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.Trim(line, "*$\r\n")))
}
