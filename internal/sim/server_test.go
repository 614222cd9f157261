package sim

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// redisServer is one Redis process: an embedded Redis with a run id, and what changed it.
type redisServer struct {
	*miniredis.Miniredis
	writes []write
	ahead  time.Duration // by which its clock is ahead
}

// madeBy is how many writes it takes at most to make the ledger.
const madeBy = 12

// scripts are those that were loaded on any server, by their SHA-1.
var scripts sync.Map

// write is one command that may have changed the server, as a client sent it.
type write struct {
	at   time.Time
	args []string
}

// newServer starts a Redis process.
func newServer(runID string) *redisServer {
	s := &redisServer{Miniredis: miniredis.NewMiniRedis()}
	if c, err := s.Dial(); err == nil { // starts it
		c.Close()
	}
	s.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		switch {
		case cmd == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
			sum := sha1.Sum([]byte(args[1]))
			sha := hex.EncodeToString(sum[:])
			scripts.Store(sha, args[1])
			c.WriteBulk(sha)
			return true
		case cmd == "EVALSHA": // a script that is evaluated is compiled once; one that is loaded is parsed by each server
			text, ok := scripts.Load(args[0])
			if !ok {
				return false
			}
			s.Server().Dispatch(c, append([]string{"EVAL", text.(string)}, args[1:]...))
			return true
		case cmd == "XGROUP" && len(args) > 0 && strings.EqualFold(args[0], "SETID"): // it has none; nothing reads groups here
			c.WriteOK()
			return true
		case cmd != "INFO":
			return false
		}
		c.WriteBulk("run_id:" + runID + "\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n")
		return true
	})
	return s
}

// tick sets the clock that scripts read.
func (s *redisServer) tick() {
	if s.ahead != 0 {
		s.SetTime(time.Now().Add(s.ahead))
	}
}

// note keeps what a client sends and may change something. It returns what is no whole command yet.
func (s *redisServer) note(sent []byte) (rest []byte) {
	all, rest := commands(sent)
	for _, args := range all {
		switch strings.ToUpper(args[0]) {
		case "INFO", "HELLO", "PING", "CLIENT", "SUBSCRIBE", "UNSUBSCRIBE", "HGET", "HMGET", "HGETALL", "HSCAN", "GET", "TIME",
			"ZRANGE", "ZCARD", "XRANGE", "XREVRANGE", "XLEN", "WAIT", "SELECT", "AUTH", "SCRIPT", "ROLE", "TYPE", "EXISTS", "ZLEXCOUNT":
		default:
			s.writes = append(s.writes, write{time.Now().Add(s.ahead), args})
		}
	}
	return rest
}

// replica is a new process that has all but the last lost writes of s, and at least the first ones, which made the ledger.
func (s *redisServer) replica(runID string, lost int) *redisServer {
	r := newServer(runID)
	kept := s.writes[:max(min(len(s.writes), madeBy), len(s.writes)-lost)]
	peer := server.NewPeer(bufio.NewWriter(io.Discard))
	for _, w := range kept {
		r.SetTime(w.at)
		r.Server().Dispatch(peer, w.args)
	}
	r.writes = append(r.writes, kept...)
	r.SetTime(time.Time{})
	return r
}

// commands reads what a client has sent: arrays of bulk strings. rest is what is no whole command yet.
func commands(sent []byte) (all [][]string, rest []byte) {
	for {
		r := bufio.NewReader(bytes.NewReader(sent))
		used := 0
		line := func(mark byte) int {
			text, err := r.ReadString('\n')
			used += len(text)
			if err != nil || text[0] != mark {
				return -1
			}
			n, _ := strconv.Atoi(strings.TrimSpace(text[1:]))
			return n
		}
		args := make([]string, max(line('*'), 0))
		for i := range args {
			text := make([]byte, line('$')+2)
			if _, err := io.ReadFull(r, text); err != nil || len(text) < 2 {
				return all, sent
			}
			used += len(text)
			args[i] = string(text[:len(text)-2])
		}
		if len(args) == 0 {
			return all, sent
		}
		all, sent = append(all, args), sent[used:]
	}
}
