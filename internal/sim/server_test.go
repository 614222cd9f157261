package sim

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"sluice/internal/embedredis"
)

var (
	scripts = plantable()
	broken  = make(map[string]bool) // texts of a planted bug that were found
)

// plantable are scripts into which the planted bug is put.
func plantable() *embedredis.Scripts {
	s := embedredis.NewScripts()
	s.Edit = func(text string) string {
		for pair := range slices.Chunk(bugs[*planted], 2) {
			if n := strings.Count(text, pair[0]); n > 1 {
				panic("BUG: a planted bug fits twice: " + pair[0])
			} else if n == 1 {
				text = strings.Replace(text, pair[0], pair[1], 1)
				broken[pair[0]] = true
			}
		}
		return text
	}
	return s
}

// redisServer is one Redis process: an embedded Redis with a run id, and what changed it.
type redisServer struct {
	*embedredis.Server
	name   string    // its run id
	began  time.Time // when it became master
	writes []write
	made   int                                           // of them, which made the ledger
	ahead  time.Duration                                 // by which its clock is ahead
	down   bool                                          // under the lock of scripts
	called bool                                          // by an instance, with a change; under the lock of scripts
	heard  func(who string, args []string, changed bool) // sees each command; nil = none does
}

// write is one command that has changed the server, as a client sent it.
type write struct {
	who  string
	at   time.Time
	args []string
}

// newServer starts a Redis process.
func newServer(runID string) *redisServer {
	return &redisServer{Server: embedredis.New(scripts, runID), name: runID, began: time.Now()}
}

// do runs a command of a client, and keeps it if it has changed something. It reports false when the server is down.
func (s *redisServer) do(who string, c *server.Peer, args []string) bool {
	scripts.Lock()
	defer scripts.Unlock()
	if s.down {
		return false
	}
	now := time.Now().Add(s.ahead)
	s.SetTime(now)
	changed := s.Run(c, args)
	if s.heard != nil && !loads(args) { // scripts are loaded in any order
		s.heard(who, args, changed)
	}
	if changed {
		s.called = s.called || strings.HasPrefix(who, "g")
		s.writes = append(s.writes, write{who, now, args})
	}
	return true
}

// wasCalled reports whether an instance has changed something here.
func (s *redisServer) wasCalled() bool {
	scripts.Lock()
	defer scripts.Unlock()
	return s.called
}

// loads reports whether a command loads a script.
func loads(args []string) bool { return strings.EqualFold(args[0], "SCRIPT") }

// leave ends what a client has subscribed to.
func (s *redisServer) leave(c *server.Peer) {
	scripts.Lock()
	defer scripts.Unlock()
	s.Leave(c)
}

// setClock sets by how much the clock is ahead.
func (s *redisServer) setClock(ahead time.Duration) {
	scripts.Lock()
	defer scripts.Unlock()
	s.ahead = ahead
}

// stop ends the process.
func (s *redisServer) stop() {
	scripts.Lock()
	s.down = true
	scripts.Unlock()
	s.Stop()
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
	scripts.Lock()
	defer scripts.Unlock()
	for _, w := range kept {
		r.SetTime(w.at)
		r.Run(peer, w.args)
	}
	r.writes = append(r.writes, kept...)
	return r
}
