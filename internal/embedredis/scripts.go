package embedredis

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Scripts runs the scripts of all its servers in one Lua state, and compiles each once. miniredis would make a state
// for each call, which takes longer than the script. Its lock lets one command run at a time, as in Redis.
type Scripts struct {
	sync.Mutex
	// Edit, if there is one, changes the text of a script before it is compiled: tests plant bugs.
	Edit func(text string) string

	state  *lua.LState
	loaded map[string]*lua.LFunction // by SHA-1
	known  map[string]loadedText     // by text

	server *Server      // of the script under way
	wrote  bool         // the script under way has changed something
	client *server.Peer // of the script's own commands
	out    bytes.Buffer // their replies
	in     *bufio.Reader
}

// loadedText is the text of a script and its SHA-1.
type loadedText struct{ text, sha string }

// NewScripts returns a Scripts without any.
func NewScripts() *Scripts {
	lua.MaxArrayIndex = 1 << 16 // a table with the key n is an array of n elements below it: the scripts' keys are numbers
	s := &Scripts{state: lua.NewState(), loaded: make(map[string]*lua.LFunction), known: make(map[string]loadedText)}
	s.client, s.in = server.NewPeer(bufio.NewWriter(&s.out)), bufio.NewReader(&s.out)
	redis := s.state.NewTable()
	s.state.SetGlobal("redis", redis)
	s.state.SetField(redis, "call", s.state.NewFunction(s.call))
	s.state.SetField(redis, "pcall", s.state.NewFunction(s.pcall))
	s.state.SetField(redis, "error_reply", s.state.NewFunction(errorReply))
	return s
}

// load compiles a script, and returns the name by which it is called.
func (s *Scripts) load(text string) (sha string, err error) {
	if known, ok := s.known[text]; ok {
		return known.sha, nil
	}
	sum := sha1.Sum([]byte(text))
	sha = hex.EncodeToString(sum[:])
	original := text
	if s.Edit != nil {
		text = s.Edit(text)
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return "", err
	}
	code, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return "", err
	}
	s.known[original] = loadedText{original, sha}
	s.loaded[sha] = s.state.NewFunctionFromProto(code)
	return sha, nil
}

// text is what a client sent: a copy, or the known script, which each connection loads again.
func (s *Scripts) text(sent []byte) string {
	if len(sent) > 1000 {
		s.Lock()
		defer s.Unlock()
		if known, ok := s.known[string(sent)]; ok {
			return known.text
		}
	}
	return string(sent)
}

// eval runs a script on a server: args are its name, the number of keys, the keys and the arguments.
func (s *Scripts) eval(on *Server, c *server.Peer, args []string) {
	script := s.loaded[args[0]]
	if script == nil {
		c.WriteError("NOSCRIPT No matching script. Please use EVAL.")
		return
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 || n > len(args)-2 {
		c.WriteError("ERR value is not an integer or out of range")
		return
	}
	s.server, s.wrote = on, false
	s.state.SetGlobal("KEYS", s.list(args[2:2+n]))
	s.state.SetGlobal("ARGV", s.list(args[2+n:]))
	if err := s.state.CallByParam(lua.P{Fn: script, NRet: 1, Protect: true}); err != nil {
		what := err.Error()
		if fault, ok := err.(*lua.ApiError); ok {
			what = lua.LVAsString(fault.Object)
		}
		c.WriteError("ERR " + what + " script: " + args[0] + ", on @user_script:1.")
		return
	}
	defer s.state.Pop(1)
	c.Block(func(w *server.Writer) { answer(w, s.state.Get(-1)) })
}

func (s *Scripts) list(texts []string) *lua.LTable {
	t := s.state.CreateTable(len(texts), 0)
	for _, text := range texts {
		t.Append(lua.LString(text))
	}
	return t
}

// answer writes what a script returns.
func answer(w *server.Writer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LNumber:
		w.WriteInt(int(v))
	case lua.LString:
		w.WriteBulk(string(v))
	case *lua.LTable:
		if fault, ok := v.RawGetString("err").(lua.LString); ok {
			w.WriteError(string(fault))
			return
		}
		if status, ok := v.RawGetString("ok").(lua.LString); ok {
			w.WriteInline(string(status))
			return
		}
		n := v.Len()
		w.WriteLen(n)
		for i := 1; i <= n; i++ {
			answer(w, v.RawGetInt(i))
		}
	default:
		if lua.LVAsBool(v) {
			w.WriteInt(1)
		} else {
			w.WriteNull()
		}
	}
}

// run runs a command of a script.
func (s *Scripts) run(l *lua.LState) (any, error) {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = lua.LVAsString(l.Get(i + 1))
	}
	if s.server.Changes(args[0]) {
		s.wrote = true
	}
	s.out.Reset()
	s.in.Reset(&s.out)
	s.server.commands.Dispatch(s.client, args)
	s.client.Flush()
	return server.ParseReply(s.in)
}

// call is redis.call.
func (s *Scripts) call(l *lua.LState) int {
	reply, err := s.run(l)
	if err != nil {
		l.Error(lua.LString(err.Error()), 0)
	}
	l.Push(s.value(reply))
	return 1
}

// pcall is redis.pcall.
func (s *Scripts) pcall(l *lua.LState) int {
	reply, err := s.run(l)
	if err == nil {
		l.Push(s.value(reply))
		return 1
	}
	t := l.NewTable()
	t.RawSetString("err", lua.LString(err.Error()))
	l.Push(t)
	return 1
}

// errorReply is redis.error_reply.
func errorReply(l *lua.LState) int {
	t := l.NewTable()
	t.RawSetString("err", lua.LString(l.CheckString(1)))
	l.Push(t)
	return 1
}

// value is a reply as a script sees it.
func (s *Scripts) value(reply any) lua.LValue {
	switch v := reply.(type) {
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case server.Simple:
		t := s.state.NewTable()
		t.RawSetString("ok", lua.LString(v))
		return t
	case []any:
		t := s.state.CreateTable(len(v), 0)
		for _, one := range v {
			t.Append(s.value(one))
		}
		return t
	case nil:
		return lua.LFalse
	}
	panic(fmt.Sprintf("BUG: a reply is %T", reply))
}
