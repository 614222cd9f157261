package script

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/key"
	"sluice/stockgate/redisconn"
)

// lua is one script, and the name by which Redis remembers it.
type lua struct{ name, text, sha string }

func newLua(name, text string) lua {
	sum := sha1.Sum([]byte(text))
	return lua{name, text, hex.EncodeToString(sum[:])}
}

// call is one run of a script.
type call struct {
	lua
	keys []string
	args []any
	redisconn.Once
	done bool // a server has, or may have, run it: it is not sent again
}

// servers is the connections to the servers.
type servers struct{ *redisconn.Client }

// run runs calls in one round trip, of a cluster in one to each master that has some of their keys. Each of them then
// has its own reply or error. A call is sent again only when it was certainly not run: the key, or the master, is
// elsewhere.
func (w servers) run(ctx context.Context, calls []*call) {
	keys := make([]string, len(calls))
	for i, c := range calls {
		keys[i] = c.keys[0]
	}
	errs := w.Each(ctx, keys, func(ctx context.Context, r *redis.Client, which []int) error {
		var some []*call
		for _, i := range which {
			if !calls[i].done {
				some = append(some, calls[i])
			}
		}
		return runAt(ctx, r, some)
	}, lost)
	for i, c := range calls {
		if !c.done {
			c.Once = redisconn.Once{Cmd: redis.NewCmd(ctx)}
			c.SetErr(errs[i])
		}
	}
}

// runAt runs calls on one server. Those whose script it does not know, and so did not run, go again with the whole
// text. Its error is what is wrong with the server, or that some keys are elsewhere.
func runAt(ctx context.Context, r *redis.Client, calls []*call) error {
	pipe(ctx, r, calls, "evalsha", func(c *call) string { return c.sha })
	var missing []*call
	for _, c := range calls {
		if redis.HasErrorPrefix(c.Err(), "NOSCRIPT") {
			missing = append(missing, c)
		}
	}
	pipe(ctx, r, missing, "eval", func(c *call) string { return c.text })
	var elsewhere, trouble error
	for _, c := range calls {
		err := c.Err()
		c.done = !unsent(err)
		if redisconn.Redirected(err) {
			elsewhere = err
		} else if trouble == nil {
			trouble = lost(err)
		}
	}
	return cmp.Or(trouble, elsewhere)
}

// pipe sends calls in one round trip.
func pipe(ctx context.Context, r *redis.Client, calls []*call, command string, script func(*call) string) {
	if len(calls) == 0 {
		return
	}
	p := r.Pipeline()
	for _, c := range calls {
		all := append(make([]any, 0, 3+len(c.keys)+len(c.args)), command, script(c), len(c.keys))
		for _, k := range c.keys {
			all = append(all, k)
		}
		c.Once = redisconn.Once{Cmd: redis.NewCmd(ctx, append(all, c.args...)...)}
		_ = p.Process(ctx, c.Once) // only queued
	}
	_, _ = p.Exec(ctx) // each call has its own error
}

// call makes one run of l for o. Giving back has the arguments of taking, and what that returned behind its code.
func (s *Script) call(l lua, o *order) *call {
	values, c := o.values(), &call{lua: l}
	for _, t := range s.keys {
		c.keys = append(c.keys, t.Of(o.sku, s.parts, values[:namesOfKeys]...))
	}
	for _, t := range s.args {
		c.args = append(c.args, t.Of(o.sku, s.parts, values...))
	}
	c.args = append(c.args, o.extra...)
	return c
}

// fits tells whether a script can be run for a SKU: its keys need so many parts.
func (s *Script) fits(sku string) bool { return key.Fits(sku, s.parts) }

// runTake runs the script for each order and sets its outcome. Orders whose reply was lost are asked once more where a
// second run takes nothing more. If that does not say that the units are theirs, the outcome stays unknown: the first
// run may still arrive.
func (s *Script) runTake(ctx context.Context, w servers, orders []*order) {
	s.runFor(ctx, w, s.taking, orders, s.codes.outcomeOf)
	var lost []*order
	for _, o := range orders {
		if s.repeatable && o.outcome == unknown {
			lost = append(lost, o)
		}
	}
	if len(lost) == 0 {
		return
	}
	s.runFor(ctx, w, s.taking, lost, s.codes.outcomeOf)
	for _, o := range lost {
		if o.outcome != taken {
			o.outcome, o.err = unknown, errors.Join(errLost, o.err)
		}
	}
}

// errLost is the cause when the reply to a script was lost and a second run did not find the units.
var errLost = errors.New("the reply to the script was lost")

// giveBack runs the script that gives back for each order, and sets its outcome to what came of that.
func (s *Script) giveBack(ctx context.Context, w servers, orders []*order) {
	s.runFor(ctx, w, *s.givingBack, orders, s.codes.givenBack)
}

// meaning reads a reply to an order of so many units; false when it has none.
type meaning func(reply any, quantity int64) (outcome, bool)

func (s *Script) runFor(ctx context.Context, w servers, l lua, orders []*order, read meaning) {
	calls := make([]*call, len(orders))
	for i, o := range orders {
		calls[i] = s.call(l, o)
	}
	w.run(ctx, calls)
	for i, o := range orders {
		if o.outcome, o.err = s.verdict(calls[i], o.quantity, read); o.outcome == taken && o.extra == nil {
			o.extra = replyValues(calls[i].Val())
		}
	}
}

// verdict reads the reply to one call.
func (s *Script) verdict(c *call, quantity int64, read meaning) (outcome, error) {
	switch err := c.Err(); {
	case err == nil, errors.Is(err, redis.Nil):
	case !c.done:
		return notSent, err
	case answered(err) && s.preset:
		return failed, err
	default: // Lua undoes nothing: what a script of the shop's own did before it failed stays done
		return unknown, err
	}
	found, known := read(c.Val(), quantity)
	if !known {
		return unknown, unlisted{c.name, c.Val()}
	}
	return found, nil
}

// unlisted is the error for a reply that codes do not explain.
type unlisted struct {
	script string
	reply  any
}

func (u unlisted) Error() string {
	value := "nil"
	if u.reply != nil {
		value = fmt.Sprint(u.reply)
	}
	return fmt.Sprintf("script %s returned %.64s, which is not in codes: add it to stock.script.codes", u.script, value)
}

// RedisError says that Redis has answered: it is well.
func (unlisted) RedisError() {}
