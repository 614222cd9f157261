package ledger

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The scripts, and the texts that each of them begins with.
//
//go:embed lua/*.lua
var lua embed.FS

const (
	beginning = "stock"
	marking   = "mark"
)

// texts reads the scripts by name.
func texts() map[string]string {
	all := make(map[string]string)
	for _, name := range []string{beginning, marking, "reserve", "finish", "sweep", "set_total", "set_state", "look", "visit", "leave", "add", "set_hours", "create", "acknowledge", "audit", "recover"} {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		all[name] = string(text)
	}
	return all
}

// script is one text and the name by which Redis remembers it.
type script struct{ text, sha string }

type scripts map[string]script

// compile puts the beginnings before each text, which becomes a function, so that every reply is signed.
func compile(texts map[string]string) scripts {
	all := make(scripts)
	for name, text := range texts {
		if name == beginning || name == marking {
			continue
		}
		text = texts[beginning] + "\n" + texts[marking] + "\nlocal function script()\n" + text + "\nend\nreturn sign(script())\n"
		sum := sha1.Sum([]byte(text))
		all[name] = script{text, hex.EncodeToString(sum[:])}
	}
	return all
}

// load teaches Redis all scripts in one round trip.
func (s scripts) load(ctx context.Context, c *redis.Conn) error {
	pipe := c.Pipeline()
	for _, script := range s {
		pipe.ScriptLoad(ctx, script.text)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("load scripts: %w", err)
	}
	return nil
}

// once is a command that go-redis must not send again by itself, whatever its other settings say.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// eval calls a script on one SKU's keys. Only NOSCRIPT lets it send again: then Redis has run nothing, and takes the
// whole text, so that no flush can come between loading and calling.
func (r *Redis) eval(ctx context.Context, c *redis.Client, name, sku string, args []any) ([]any, error) {
	s := r.scripts[name]
	reply, err := eval(ctx, c, "evalsha", s.sha, sku, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = eval(ctx, c, "eval", s.text, sku, args)
	}
	return reply, err
}

// eval makes one round trip.
func eval(ctx context.Context, c *redis.Client, command, script, sku string, args []any) ([]any, error) {
	cmd := evaluation(ctx, command, script, sku, args)
	_ = c.Process(ctx, cmd) // the error is the command's own
	return cmd.Slice()
}

// evaluation is the command that runs a script on one SKU's keys.
func evaluation(ctx context.Context, command, script, sku string, args []any) once {
	k := keys(sku)
	all := make([]any, 0, 3+len(k)+len(args))
	all = append(all, command, script, len(k))
	for _, key := range k {
		all = append(all, key)
	}
	return once{redis.NewCmd(ctx, append(all, args...)...)}
}
