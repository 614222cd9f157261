package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/link"
)

// errand is one call of a script.
type errand struct {
	script, sku string
	args        []any
	items       []Item // that it is about
	whole       bool   // their users and quantities count, not only their serials
	names       bool   // the reply must name the serials of those that it says are held now
	aside       bool   // it only reads, and leaves no mark
	blind       bool   // it does not look at the numbers: its reply does not tell whether there is a ledger

	// As it sets out:
	keys  [numKeys]string
	seq   int64  // the number of the call
	trace *trace // what this instance has seen of the ledger; nil = nothing
	claim claim  // what it says of that

	// As it comes back:
	heard  bool  // Redis has answered it
	signed       // the answer
	err    error // of this errand alone
	few    error // why too few replicas have what it did

	done func() // called once, when what came of it is known; nil = nobody waits for it alone

	// Where it may share a round trip (pipelines):
	orders int           // how many items
	back   chan struct{} // closed when what came of it is known; nil = it waits for nobody
	until  time.Time     // it is not sent later
}

// signature is how a reply begins: the number of the call that it answers, the version, and why the SKU was frozen by
// this very call.
const signature = 5

// run calls a script on one SKU's keys. A nil reply is nil and no error.
func (r *Redis) run(ctx context.Context, script, sku string, args ...any) ([]any, error) {
	return r.ask(ctx, &errand{script: script, sku: sku, args: args})
}

// ask calls a script, says what this instance has seen, and learns from the reply.
func (r *Redis) ask(ctx context.Context, q *errand) (answer []any, err error) {
	r.setOut(q)
	err = r.link.To(q.keys[0]).Ask(ctx, func(ctx context.Context, client *redis.Client, server string) error {
		r.meet(server)
		var reply []any
		if q.script == "reserve" && r.replicas > 0 {
			reply, q.few, err = r.evalReplicated(ctx, client, q, &server)
		} else {
			reply, err = r.eval(ctx, client, q, &server)
		}
		if err != nil {
			return err
		}
		return q.hear(reply)
	}, fault)
	return r.comeBack(q, err)
}

// setOut gives an errand its keys, its number, and what it says of the ledger.
func (r *Redis) setOut(q *errand) {
	if q.keys[0] == "" {
		q.keys = fiveKeys(q.sku)
	}
	q.seq, q.trace = r.calls.Add(1), r.traces.find(q.sku)
	q.claim = q.trace.claim()
}

// hear reads the reply to an errand. What is another call's is an error.
func (q *errand) hear(reply []any) (err error) {
	if q.signed, err = sign(reply, q.seq); err != nil {
		return err
	}
	if q.names {
		return named(q.answer, q.items)
	}
	return nil
}

// comeBack learns from what came of an errand.
func (r *Redis) comeBack(q *errand, err error) (answer []any, _ error) {
	switch {
	case errors.Is(err, link.ErrMixedUp):
		r.log.Warn("reply was another call's: all connections are closed, and the next call closes the SKU", "sku", q.sku, "cause", err)
		if q.trace = r.traces.add(q.sku); q.trace != nil {
			q.trace.suspect(q.claim, lostEcho)
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	r.learn(q)
	return q.answer, nil
}

// markSize is how many arguments marked adds.
const markSize = 8

// marked adds the last arguments of an errand's script: its mark, and the channel of its news.
func (r *Redis) marked(args []any, q *errand, server *string) []any {
	who, c := &r.instance, &q.claim
	if q.aside {
		who = nil // which is sent as ""
	}
	return append(args, who, &q.seq, &c.answered, &c.epoch, &c.ver, server, &c.lost, &r.news)
}

// signed is a reply that answers the errand.
type signed struct {
	epoch, ver int64 // 0 without a ledger
	froze      string
	answer     []any
}

// sign reads a reply, which must be that of the call seq.
func sign(reply []any, seq int64) (s signed, err error) {
	if len(reply) != signature || !says(reply[0], seq) {
		return signed{}, fmt.Errorf("%w: not that of call %d", link.ErrMixedUp, seq)
	}
	epoch, ok1 := reply[1].(int64)
	ver, ok2 := reply[2].(int64)
	froze, ok3 := reply[3].(string)
	answer, ok4 := reply[4].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 && reply[4] != nil {
		return signed{}, fmt.Errorf("the reply %v cannot be read", reply)
	}
	return signed{epoch, ver, froze, answer}, nil
}

// says reports whether v is the number n, as it was sent.
func says(v any, n int64) bool {
	var room [20]byte
	text, ok := v.(string)
	return ok && text == string(strconv.AppendInt(room[:0], n, 10))
}

// named reads codes that name the serials of new holds, and puts Held in their places. A hold without its serial, or
// with another one, was somebody else's.
func named(answer []any, items []Item) error {
	if answer == nil || len(answer) != hintSize+len(items) {
		return nil // the length is judged where the codes are read
	}
	for i, v := range answer[hintSize:] {
		switch serial, ok := v.(string); {
		case ok && serial == items[i].Serial:
			answer[hintSize+i] = int64(Held)
		case ok, v == int64(Held):
			return fmt.Errorf("%w: it holds %.32q for %.32q", link.ErrMixedUp, v, items[i].Serial)
		}
	}
	return nil
}

// learn takes in what the reply said of the ledger.
func (r *Redis) learn(q *errand) {
	t := q.trace
	switch {
	case q.blind:
		return
	case q.epoch == 0 && t != nil && t.miss(q.seq):
		r.alarm(q.sku, lostKey, q.claim)
	case q.epoch == 0:
		return
	case t == nil:
		t = r.traces.add(q.sku)
	}
	if t == nil || q.epoch == 0 {
		return
	}
	if t.learn(q.seq, q.epoch, q.ver, !q.aside) {
		r.traces.raised.Store(true)
	}
	if q.froze != "" {
		r.alarm(q.sku, q.froze, q.claim)
	}
}

// alarm counts and says that the ledger of sku has lost something that c claims.
func (r *Redis) alarm(sku, why string, c claim) {
	if n := r.lost[why]; n != nil {
		n.Add(1)
	}
	r.log.Error("ledger lost what it had said: the SKU is closed until it is reconciled", "sku", sku, "why", why,
		"seen_epoch", c.epoch, "seen_ver", c.ver, "answered_call", c.answered)
}

// gone reports whether the ledger of sku was there and is not any more, and what is to be said of it then.
func (r *Redis) gone(sku string) (Hint, bool) {
	t := r.traces.find(sku)
	if t == nil {
		return Hint{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return Hint{Epoch: t.epoch, Ver: t.ver, State: Lost}, t.gone > 0
}

// identify names the process that a connection has reached. Where Redis does not tell (INFO may be denied, or mean
// nothing in a service that hides its servers), marks and versions alone must tell that something was lost.
func (r *Redis) identify(ctx context.Context, c *redis.Conn) (string, error) {
	text, err := c.Info(ctx, "server").Result()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") && !redis.HasErrorPrefix(err, "ERR unknown command") {
		return "", err // it may tell the next time
	}
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok && id != "" {
			return id, nil
		}
	}
	if !r.nameless.Swap(true) {
		r.log.Warn("redis does not tell its run id: a restart that lost writes is noticed by the instances' marks alone, each for itself")
	}
	return "", nil
}
