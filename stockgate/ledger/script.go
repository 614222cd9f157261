package ledger

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// The scripts, and the texts that each of them begins with.
//
//go:embed lua/*.lua
var lua embed.FS

const (
	preludeStock = "stock"
	preludeMark  = "mark"
	preludeQueue = "queue" // of the scripts about orders that wait
)

// reserveScript takes units.
const reserveScript = "reserve"

// texts reads the scripts by name.
func texts() map[string]string {
	all := make(map[string]string)
	files, err := lua.ReadDir("lua")
	for _, file := range files {
		var text []byte
		if err == nil {
			text, err = lua.ReadFile("lua/" + file.Name())
		}
		all[strings.TrimSuffix(file.Name(), ".lua")] = string(text)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return all
}

// script is one text and the name by which Redis remembers it.
type script struct{ text, sha string }

type scripts map[string]*script

// compile puts the beginnings before each text, which becomes a function, so that every reply is signed.
func compile(texts map[string]string) scripts {
	all := make(scripts)
	for name, text := range texts {
		prelude := texts[preludeStock] + "\n" + texts[preludeMark]
		switch name {
		case preludeStock, preludeMark, preludeQueue:
			continue
		case "hand_out", "decide", "positions", "slots":
			prelude += "\n" + texts[preludeQueue]
		}
		text = prelude + "\nlocal function script()\n" + text + "\nend\nreturn sign(script())\n"
		sum := sha1.Sum([]byte(text))
		all[name] = &script{text, hex.EncodeToString(sum[:])}
	}
	return all
}

// compiled are the scripts as they are embedded, the same for all stores.
var compiled = sync.OnceValue(func() scripts { return compile(texts()) })

// load teaches Redis all scripts in one round trip.
func (s scripts) load(ctx context.Context, c redis.Cmdable) error {
	pipe := c.Pipeline()
	for _, script := range s {
		pipe.ScriptLoad(ctx, script.text)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("load scripts: %w", err)
	}
	return nil
}

// eval runs the script of a call. Only NOSCRIPT lets it send again: then Redis has run nothing, and takes the
// whole text, so that no flush can come between loading and calling.
func (r *Store) eval(ctx context.Context, c redisconn.Commands, q *scriptCall, server *string) (
	reply []any, err error) {

	for _, text := range []bool{false, true} {
		cmd := r.command(ctx, q, server, text)
		if q.script == reserveScript && r.replicas > 0 {
			pipe := c.Pipeline()
			_ = pipe.Process(ctx, cmd)
			q.few = r.execAndWait(ctx, pipe, true)
		} else {
			_ = c.Process(ctx, cmd) // the error is the command's own
		}
		if reply, err = cmd.Slice(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			break
		}
	}
	return reply, err
}

// command runs the script of a call, by its text or its name. Most of its arguments are addresses, for which no
// room is needed: a gate with very many ledgers calls hardly anything but sweeps.
func (r *Store) command(ctx context.Context, q *scriptCall, server *string, text bool) redisconn.Once {
	s, all := r.scripts[q.script], make([]any, 0, 3+numKeys+len(q.more)+len(q.args)+1+4*len(q.items)+markArgs)
	if text {
		all = append(all, "eval", &s.text, numKeys+len(q.more))
	} else {
		all = append(all, "evalsha", &s.sha, numKeys+len(q.more))
	}
	for i := range q.keys {
		all = append(all, &q.keys[i])
	}
	for i := range q.more {
		all = append(all, &q.more[i])
	}
	all = q.itemized(append(all, q.args...))
	return redisconn.Once{Cmd: redis.NewCmd(ctx, r.appendMark(all, q, server)...)}
}
