package layout

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// script is the shop's own Lua, which says what is left of a SKU.
//
//	KEYS[1] is key; then follow status_key, sold_out_key and users_key, those of them that are configured
//	ARGV[1] is the SKU
//
// It returns what is left, or {left, on sale} with 1 or 0 for the latter. What is left is an integer, or its digits
// in a string, since Lua keeps numbers above 2^53 only so. nil (false) is a SKU that does not exist.
type script struct {
	text, sha string
	writes    bool // this Redis cannot forbid it to write
}

func scripted(o Options) (shape, error) {
	if o.Script == "" {
		return shape{}, errors.New("script_file: the layout script needs a script")
	}
	sum := sha1.Sum([]byte(o.Script))
	return shape{script: &script{text: o.Script, sha: hex.EncodeToString(sum[:])}}, nil
}

// IsScript reports whether the stock is read by a script, which Redis must be taught by QueueLoad when it answers
// NOSCRIPT.
func (l *Layout) IsScript() bool { return l.script != nil }

// Older is l for a Redis before 7, which has no command that runs a script and forbids it to write. The shop's
// word is then all that says that it does not.
func (l *Layout) Older() *Layout {
	older := *l
	if l.script != nil {
		older.script = &script{l.script.text, l.script.sha, true}
	}
	return &older
}

// QueueLoad puts the one command into pipe that teaches Redis the script.
func (l *Layout) QueueLoad(ctx context.Context, pipe redis.Pipeliner) {
	pipe.ScriptLoad(ctx, l.script.text)
}

// queue puts the call of the script into pipe.
func (s *script) queue(ctx context.Context, pipe redis.Pipeliner, keys []string, sku string) {
	if s.writes {
		pipe.EvalSha(ctx, s.sha, keys, sku)
		return
	}
	pipe.EvalShaRO(ctx, s.sha, keys, sku)
}

// scriptKeys are all keys of one SKU, for a script.
func (l *Layout) scriptKeys(sku string) []string {
	keys := []string{l.Key(sku)}
	for _, t := range []KeyTemplate{l.status, l.flag, l.users} {
		if t != nil {
			keys = append(keys, t.Of(sku, l.parts))
		}
	}
	return keys
}

// said reads what the script returned. What is not documented is an error, never a stock.
func (l *Layout) said(answer *redis.Cmd) (Reading, error) {
	reply, err := answer.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Reading{}, err
	}
	r := Reading{Exists: true, OnSale: true}
	if pair, ok := reply.([]any); ok {
		if len(pair) != 2 || pair[1] != int64(0) && pair[1] != int64(1) {
			return r, undocumented(reply)
		}
		reply, r.OnSale = pair[0], pair[1] == int64(1)
	}
	switch left := reply.(type) {
	case nil:
		return Reading{OnSale: true}, nil
	case int64:
		r.Left = left
	case string:
		if r.Left, err = units(left); err != nil {
			return r, undocumented(reply)
		}
	default:
		return r, undocumented(reply)
	}
	r.Free = minus(r.Left, l.soldOutAt)
	return r, nil
}

func undocumented(reply any) error {
	return fmt.Errorf("the script returned %.64q; it must be what is left, an integer, or {left, 1 or 0}, or nil",
		fmt.Sprint(reply))
}
