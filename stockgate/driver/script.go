package driver

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The scripts, and the text that each of them begins with.
//
//go:embed lua/*.lua
var lua embed.FS

const beginning = "beginning"

// script is one text and the name by which Redis remembers it.
type script struct{ text, sha string }

// read returns the script of a name.
func read(name string) script {
	var text string
	for _, part := range []string{beginning, name} {
		b, err := lua.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		text += string(b)
	}
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// once is a command that go-redis must not send again by itself, whatever its other settings say.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// call is one run of a script.
type call struct {
	script
	keys []string
	args []any
	once
}

// queue makes the command anew.
func (c *call) queue(ctx context.Context, command, script string) redis.Cmder {
	all := make([]any, 0, 3+len(c.keys)+len(c.args))
	all = append(all, command, script, len(c.keys))
	for _, k := range c.keys {
		all = append(all, k)
	}
	c.once = once{redis.NewCmd(ctx, append(all, c.args...)...)}
	return c.once
}

// run runs all calls in one round trip. Those that Redis did not know the script of, and so did not run, go again with
// the whole text.
func (w way) run(ctx context.Context, calls []*call) {
	cmds := make([]redis.Cmder, len(calls))
	for i, c := range calls {
		cmds[i] = c.queue(ctx, "evalsha", c.sha)
	}
	_ = w.send(ctx, cmds) // each call has its own error
	cmds = cmds[:0]
	for _, c := range calls {
		if redis.HasErrorPrefix(c.Err(), "NOSCRIPT") {
			cmds = append(cmds, c.queue(ctx, "eval", c.text))
		}
	}
	_ = w.send(ctx, cmds)
}

// scripted is a decision of one script, run once for each order.
type scripted struct {
	way
	taking, giving script
	keys           func(*order) []string
	args           func(*order) []any
	argsBack       func(*order) []any // nil = as for taking
	keysBack       func(*order) []string
	read           func(o *order, reply any) (why, error)
	readBack       func(o *order, reply any) (why, error) // nil = read

	// look asks, where a code leaves it open, why nothing was taken; nil = no code does.
	look func(ctx context.Context, orders []*order)
}

func (s *scripted) take(ctx context.Context, orders []*order) {
	calls := make([]*call, len(orders))
	for i, o := range orders {
		calls[i] = &call{script: s.taking, keys: s.keys(o), args: s.args(o)}
	}
	s.run(ctx, calls)
	for i, o := range orders {
		o.why, o.err = verdict(calls[i], o, s.read)
	}
	if s.look != nil {
		s.look(ctx, orders)
	}
}

func (s *scripted) giveBack(ctx context.Context, orders []*order) {
	keys, args, reading := s.keys, s.args, s.read
	if s.keysBack != nil {
		keys = s.keysBack
	}
	if s.argsBack != nil {
		args = s.argsBack
	}
	if s.readBack != nil {
		reading = s.readBack
	}
	calls := make([]*call, len(orders))
	for i, o := range orders {
		calls[i] = &call{script: s.giving, keys: keys(o), args: args(o)}
	}
	s.run(ctx, calls)
	for i, o := range orders {
		o.given, o.err = verdict(calls[i], o, reading)
	}
}

// verdict reads the reply to one call.
func verdict(c *call, o *order, read func(*order, any) (why, error)) (why, error) {
	if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return fail(err), err
	}
	return read(o, c.Val())
}

// codes reads numbers that mean what table says. Any other reply is a fault.
func codes(table map[int64]why) func(*order, any) (why, error) {
	return func(o *order, reply any) (why, error) {
		if n, ok := reply.(int64); ok {
			if w, ok := table[n]; ok {
				return w, nil
			}
		}
		return faulty, fmt.Errorf("decide %q: %v is none of the script's codes", o.sku, reply)
	}
}

// units reads the number of units, all of the order's, or 0.
func units(o *order, reply any) (why, error) {
	switch reply {
	case o.quantity:
		return taken, nil
	case int64(0):
		return notEnough, nil
	}
	return faulty, fmt.Errorf("decide %q: %v is neither its %d units nor 0", o.sku, reply, o.quantity)
}

// mostDigits are those that Lua counts one by one.
const mostDigits = 15

// integer reads what a field or string holds, as the scripts do. nil is missing.
func integer(v any) (n int64, there bool, err error) {
	text, there := v.(string)
	if !there {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || len(strings.TrimPrefix(text, "-")) > mostDigits {
		return 0, true, notInteger(text)
	}
	return n, true, nil
}

// notInteger says what stands where a number belongs. It is as good as Redis' own word.
type notInteger string

func (n notInteger) Error() string {
	return fmt.Sprintf("%.32q is not an integer of at most %d digits", string(n), mostDigits)
}
func (notInteger) RedisError() {}
