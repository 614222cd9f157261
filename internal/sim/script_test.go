package sim

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// engine runs the scripts of all servers in one Lua state, and compiles each once. The embedded Redis would make a
// state for each call, which takes longer than the script.
type engine struct {
	mu     sync.Mutex // one command at a time, as in Redis
	state  *lua.LState
	loaded map[string]*lua.LFunction // by SHA-1
	known  map[string]loadedText     // by text

	server *redisServer // of the script under way
	wrote  bool         // the script under way has changed something
	client *server.Peer // of the script's own commands
	out    bytes.Buffer // their replies
	in     *bufio.Reader

	broken map[string]bool // texts of a planted bug that were found
}

// loadedText is the text of a script and its SHA-1.
type loadedText struct{ text, sha string }

var scripts = newEngine()

func newEngine() *engine {
	e := &engine{state: lua.NewState(), loaded: make(map[string]*lua.LFunction),
		known: make(map[string]loadedText), broken: make(map[string]bool)}
	e.client, e.in = server.NewPeer(bufio.NewWriter(&e.out)), bufio.NewReader(&e.out)
	redis := e.state.NewTable()
	e.state.SetGlobal("redis", redis)
	e.state.SetField(redis, "call", e.state.NewFunction(e.call))
	e.state.SetField(redis, "pcall", e.state.NewFunction(e.pcall))
	return e
}

// load compiles a script, and returns the name by which it is called.
func (e *engine) load(text string) (sha string) {
	if known, ok := e.known[text]; ok {
		return known.sha
	}
	sum := sha1.Sum([]byte(text))
	sha = hex.EncodeToString(sum[:])
	e.known[text] = loadedText{text, sha}
	for pair := range slices.Chunk(bugs[*planted], 2) {
		if n := strings.Count(text, pair[0]); n > 1 {
			panic("BUG: a planted bug fits twice: " + pair[0])
		} else if n == 1 {
			text = strings.Replace(text, pair[0], pair[1], 1)
			e.broken[pair[0]] = true
		}
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		panic(err)
	}
	code, err := lua.Compile(chunk, "user_script")
	if err != nil {
		panic(err)
	}
	e.loaded[sha] = e.state.NewFunctionFromProto(code)
	return sha
}

// text is what a client sent: a copy, or the known script, which each connection loads again.
func (e *engine) text(sent []byte) string {
	if len(sent) > 1000 {
		e.mu.Lock()
		defer e.mu.Unlock()
		if known, ok := e.known[string(sent)]; ok {
			return known.text
		}
	}
	return string(sent)
}

// eval runs a script on a server: args are its name, the number of keys, the keys and the arguments.
func (e *engine) eval(s *redisServer, c *server.Peer, args []string) {
	script := e.loaded[args[0]]
	if script == nil {
		c.WriteError("NOSCRIPT No matching script. Please use EVAL.")
		return
	}
	var n int
	fmt.Sscan(args[1], &n)
	e.server, e.wrote = s, false
	e.state.SetGlobal("KEYS", e.list(args[2:2+n]))
	e.state.SetGlobal("ARGV", e.list(args[2+n:]))
	if err := e.state.CallByParam(lua.P{Fn: script, NRet: 1, Protect: true}); err != nil {
		what := err.Error()
		if fault, ok := err.(*lua.ApiError); ok {
			what = lua.LVAsString(fault.Object)
		}
		c.WriteError("ERR " + what + " script: " + args[0] + ", on @user_script:1.")
		return
	}
	defer e.state.Pop(1)
	c.Block(func(w *server.Writer) { answer(w, e.state.Get(-1)) })
}

func (e *engine) list(texts []string) *lua.LTable {
	t := e.state.CreateTable(len(texts), 0)
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
func (e *engine) run(l *lua.LState) (any, error) {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = lua.LVAsString(l.Get(i + 1))
	}
	if e.server.changes(args[0]) {
		e.wrote = true
	}
	e.out.Reset()
	e.in.Reset(&e.out)
	e.server.commands.Dispatch(e.client, args)
	e.client.Flush()
	return server.ParseReply(e.in)
}

// call is redis.call.
func (e *engine) call(l *lua.LState) int {
	reply, err := e.run(l)
	if err != nil {
		l.Error(lua.LString(err.Error()), 0)
	}
	l.Push(e.value(reply))
	return 1
}

// pcall is redis.pcall.
func (e *engine) pcall(l *lua.LState) int {
	reply, err := e.run(l)
	if err == nil {
		l.Push(e.value(reply))
		return 1
	}
	t := l.NewTable()
	t.RawSetString("err", lua.LString(err.Error()))
	l.Push(t)
	return 1
}

// value is a reply as a script sees it.
func (e *engine) value(reply any) lua.LValue {
	switch v := reply.(type) {
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case server.Simple:
		t := e.state.NewTable()
		t.RawSetString("ok", lua.LString(v))
		return t
	case []any:
		t := e.state.CreateTable(len(v), 0)
		for _, one := range v {
			t.Append(e.value(one))
		}
		return t
	case nil:
		return lua.LFalse
	}
	panic(fmt.Sprintf("BUG: a reply is %T", reply))
}
