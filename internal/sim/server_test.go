package sim

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// redisServer is one Redis process: an embedded Redis with a run id, and what changed it.
type redisServer struct {
	*miniredis.Miniredis
	commands *server.Server
	runID    string
	writes   []write
	made     int                                           // of them, which made the ledger
	ahead    time.Duration                                 // by which its clock is ahead
	down     bool                                          // under scripts.mu
	heard    func(who string, args []string, changed bool) // sees each command; nil = none does
}

// write is one command that has changed the server, as a client sent it.
type write struct {
	who  string
	at   time.Time
	args []string
}

// newServer starts a Redis process.
func newServer(runID string) *redisServer {
	s := &redisServer{Miniredis: miniredis.NewMiniRedis(), runID: runID}
	if c, err := s.Dial(); err == nil { // starts it
		c.Close()
	}
	s.commands = s.Server()
	return s
}

// do runs a command of a client, and keeps it if it has changed something. It reports false when the server is down.
func (s *redisServer) do(who string, c *server.Peer, args []string) bool {
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	if s.down {
		return false
	}
	now := time.Now().Add(s.ahead)
	s.SetTime(now)
	changed := s.run(c, args)
	if s.heard != nil && !loads(args) { // scripts are loaded in any order
		s.heard(who, args, changed)
	}
	if changed {
		s.writes = append(s.writes, write{who, now, args})
	}
	return true
}

// run runs a command, and reports whether it may have changed something.
func (s *redisServer) run(c *server.Peer, args []string) (changed bool) {
	switch cmd := strings.ToUpper(args[0]); cmd {
	case "SCRIPT":
		if !strings.EqualFold(args[1], "LOAD") {
			break
		}
		c.WriteBulk(scripts.load(args[2]))
		return false
	case "EVALSHA":
		scripts.eval(s, c, args[1:])
		return scripts.wrote
	case "EVAL":
		args[1] = scripts.load(args[1])
		scripts.eval(s, c, args[1:])
		return scripts.wrote
	case "XGROUP":
		if strings.EqualFold(args[1], "SETID") { // the embedded Redis has none; nothing reads groups here
			c.WriteOK()
			return false
		}
	case "INFO":
		c.WriteBulk("run_id:" + s.runID + "\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n")
		return false
	}
	s.commands.Dispatch(c, args)
	return s.changes(args[0])
}

// loads reports whether a command loads a script.
func loads(args []string) bool { return strings.EqualFold(args[0], "SCRIPT") }

// changes reports whether a command may change something.
func (s *redisServer) changes(cmd string) bool {
	switch cmd = strings.ToUpper(cmd); cmd {
	case "HELLO", "PING", "CLIENT", "SUBSCRIBE", "UNSUBSCRIBE", "PUBLISH", "TIME", "XINFO", "SELECT", "AUTH":
		return false
	}
	return !s.IsReadOnlyCommand(cmd)
}

// leave ends what a client has subscribed to.
func (s *redisServer) leave(c *server.Peer) {
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	s.commands.Dispatch(c, []string{"UNSUBSCRIBE"})
}

// setClock sets by how much the clock is ahead.
func (s *redisServer) setClock(ahead time.Duration) {
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	s.ahead = ahead
}

// stop ends the process.
func (s *redisServer) stop() {
	scripts.mu.Lock()
	s.down = true
	scripts.mu.Unlock()
	s.Close()
}

// replica is a new process that has all but the last lost writes of s, and at least those that made the ledger, and the
// first one of each client: of an instance that Redis has never known, none can know when it is dead.
func (s *redisServer) replica(runID string, lost int) *redisServer {
	if lost == all {
		return s.replay(runID, nil)
	}
	kept, known := s.made, make(map[string]bool)
	for i, w := range s.writes {
		if !known[w.who] {
			kept, known[w.who] = max(kept, i+1), true
		}
	}
	return s.replay(runID, s.writes[:max(kept, len(s.writes)-lost)])
}

// replay is a new process that has some writes.
func (s *redisServer) replay(runID string, kept []write) *redisServer {
	r := newServer(runID)
	r.heard = s.heard
	r.made = min(s.made, len(kept))
	peer := server.NewPeer(bufio.NewWriter(io.Discard))
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	for _, w := range kept {
		r.SetTime(w.at)
		r.run(peer, w.args)
	}
	r.writes = append(r.writes, kept...)
	return r
}

// readCommand reads an array of bulk strings, in room.
func readCommand(r *bufio.Reader, room *[]byte) ([]string, error) {
	n, err := readLength(r)
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
		args[i] = scripts.text(text[:length])
	}
	return args, err
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(line[1 : len(line)-2]))
}
