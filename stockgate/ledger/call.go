package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// scriptCall is one call of a script.
type scriptCall struct {
	script, sku string
	args        []any
	items       []Item // that it is about

	whole bool       // their users and quantities count, not only their serials
	waits bool       // some of them have a request
	names bool       // the reply must name the serials of those that it says are held now
	aside bool       // it only reads, and leaves no mark
	blind bool       // it does not look at the numbers: its reply does not tell whether there is a ledger
	more  []string   // keys beside those of each call
	as    *homeClaim // who makes it, and what that one has seen; nil = this instance

	// As it sets out:
	keys  [numKeys]string
	seq   int64      // the number of the call
	trace *SeenState // what this instance has seen of the ledger; nil = nothing
	claim Claim      // what it says of that

	// As it comes back:
	heard    bool   // Redis has answered it
	answered Answer // which version of the ledger has; its epoch is 0 where there is no ledger
	froze    string // why the SKU was frozen by this very call
	answer   []any
	err      error // of this call alone
	few      error // why too few replicas have what it did
}

// signatureSize is how a reply begins: the number of the call that it answers, the version, the sale, and why the SKU
// was frozen by this very call.
const signatureSize = 6

// callScript calls a script on one SKU's keys. A nil reply is nil and no error.
func (r *Store) callScript(ctx context.Context, script, sku string, args ...any) ([]any, error) {
	return r.call(ctx, &scriptCall{script: script, sku: sku, args: args})
}

// call calls a script, says what this instance has seen, and learns from the reply.
func (r *Store) call(ctx context.Context, q *scriptCall) (answer []any, err error) {
	r.prepare(q)
	err = r.link.To(q.keys[0]).Ask(ctx, func(ctx context.Context, client redisconn.Commands, server string) error {
		reply, err := r.eval(ctx, client, q, &server)
		if err != nil {
			return err
		}
		return q.decodeReply(reply)
	}, storeFault)
	return r.finishCall(q, err)
}

// prepare gives a call its keys, its number, and what it says of the ledger.
func (r *Store) prepare(q *scriptCall) {
	if q.keys[0] == "" {
		q.keys = r.keys(q.sku)
	}
	q.seq, q.trace = r.calls.Add(1), r.Seen.Find(q.sku)
	if q.claim = q.trace.Claim(); q.as != nil {
		q.claim = q.as.Claim
	}
}

// decodeReply reads the reply to a call. What is another call's is an error.
func (q *scriptCall) decodeReply(reply []any) (err error) {
	if err = q.readSigned(reply); err != nil {
		return err
	}
	if q.names {
		return checkSerials(q.answer, q.items)
	}
	return nil
}

// finishCall learns from what came of a call.
func (r *Store) finishCall(q *scriptCall, err error) (answer []any, _ error) {
	switch {
	case errors.Is(err, redisconn.ErrReplyMismatch):
		r.log.Warn("reply was another call's: all connections are closed, and the next call closes the SKU", "sku", q.sku,
			"err", err)
		if q.trace = r.Seen.Add(q.sku); q.trace != nil {
			q.trace.Suspect(q.claim, lostEcho)
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	r.learn(q)
	return q.answer, nil
}

// markArgs is how many arguments appendMark adds.
const markArgs = 9

// appendMark adds the last arguments of a call's script: its mark, and the channel of its notifications.
func (r *Store) appendMark(args []any, q *scriptCall, server *string) []any {
	who, c := &r.instance, &q.claim
	switch {
	case q.aside:
		who = nil // which is sent as ""
	case q.as != nil:
		who = &q.as.name
	}
	return append(args, who, &q.seq, &c.Answered, &c.Epoch, &c.Ver, &c.Sale, server, &c.Lost, &r.channel)
}

// readSigned reads a reply, which must be that of the call.
func (q *scriptCall) readSigned(reply []any) error {
	if len(reply) != signatureSize || !equals(reply[0], q.seq) {
		return fmt.Errorf("%w: not that of call %d", redisconn.ErrReplyMismatch, q.seq)
	}
	epoch, ok1 := reply[1].(int64)
	ver, ok2 := reply[2].(int64)
	sale, ok3 := reply[3].(int64)
	froze, ok4 := reply[4].(string)
	answer, ok5 := reply[5].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 && reply[5] != nil {
		return fmt.Errorf("the reply %v cannot be read", reply)
	}
	q.answered, q.froze, q.answer = Answer{Call: q.seq, Epoch: epoch, Ver: ver, Sale: sale}, froze, answer
	return nil
}

// equals reports whether v is the number n, as it was sent.
func equals(v any, n int64) bool {
	var room [20]byte
	text, ok := v.(string)
	return ok && text == string(strconv.AppendInt(room[:0], n, 10))
}

// checkSerials reads codes that name the serials of new holds, and puts Held in their places. A hold without its
// serial, or with another one, was another client's.
func checkSerials(answer []any, items []Item) error {
	if answer == nil || len(answer) != versionSize+len(items) {
		return nil // the length is judged where the codes are read
	}
	for i, v := range answer[versionSize:] {
		switch serial, ok := v.(string); {
		case ok && serial == items[i].Serial:
			answer[versionSize+i] = int64(Held)
		case ok, v == int64(Held):
			return fmt.Errorf("%w: it holds %.32q for %.32q", redisconn.ErrReplyMismatch, v, items[i].Serial)
		}
	}
	return nil
}

// learn takes in what the reply said of the ledger.
func (r *Store) learn(q *scriptCall) {
	t := q.trace
	switch {
	case q.blind:
		return
	case q.answered.Epoch == 0 && t != nil && t.Miss(q.seq):
		r.alarm(q.sku, lostKey, q.claim)
		r.noteLost(q.sku)
	case q.answered.Epoch == 0:
		return
	case t == nil:
		t = r.Seen.Add(q.sku)
	}
	if t == nil || q.answered.Epoch == 0 {
		return
	}
	if t.Learn(q.answered, !q.aside) {
		r.log.Info("ledger is there again", "sku", q.sku, "epoch", q.answered.Epoch, "ver", q.answered.Ver)
	}
	if q.froze != "" {
		r.alarm(q.sku, q.froze, q.claim)
	}
}

// alarm counts and says that the ledger of sku has lost something that c claims.
func (r *Store) alarm(sku, why string, c Claim) {
	if slices.Contains(lossReasons(), why) {
		r.lost.WithLabelValues(why).Inc()
	}
	attrs := []any{"sku", sku, "why", why, "seen_epoch", c.Epoch, "seen_ver", c.Ver, "answered_call", c.Answered}
	if why == lostKey {
		attrs = append(attrs, "fix", RecoverLost(sku))
	}
	r.log.Error("ledger lost what it had said: the SKU is closed until it is recovered", attrs...)
}

// identify names the process that a connection has reached. Where Redis does not tell, marks and versions alone must
// tell that something was lost.
func (r *Store) identify(ctx context.Context, c redis.Cmdable) (string, error) {
	id, err := redisconn.RunID(ctx, c)
	if err == nil && id == "" && !r.nameless.Swap(true) {
		r.log.Warn(
			"redis does not tell its run id: a restart that lost writes is noticed by the instances' marks alone, each " +
				"for itself",
		)
	}
	return id, err
}
