package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// callPipelined does what ask does for each of several errands, at most together, of as many SKUs: in one round trip to
// each server that has some of them. What fails for one of them harms no other.
func (r *Store) callPipelined(ctx context.Context, qs []*scriptCall) {
	at := make([]string, len(qs))
	for i, q := range qs {
		r.prepare(q)
		at[i] = q.keys[0]
	}
	errs := r.link.AskEach(ctx, at, func(ctx context.Context, c redisconn.Commands, server string, which []int) error {
		left := make([]*scriptCall, 0, len(which))
		for _, i := range which {
			if q := qs[i]; !q.heard {
				left = append(left, q)
			}
		}
		err := r.evalPipelined(ctx, c, server, left)
		for _, q := range left {
			if q.heard {
				_, q.err = r.finishCall(q, q.err)
			}
		}
		return err
	}, storeFault)
	for i, q := range qs {
		if q.heard {
			continue
		}
		if q.err = errNoReply; errs != nil && errs[i] != nil {
			q.err = errs[i]
		}
	}
}

// errNoReply is the cause when Redis has not said what became of a call, nor why.
var errNoReply = errors.New("redis has not answered")

// evalPipelined makes one round trip, and more for those of which Redis says that it does not know their scripts:
// it has run nothing of them, and takes the text of each script.
func (r *Store) evalPipelined(ctx context.Context, c redisconn.Commands, server string, qs []*scriptCall) error {
	unknown, err := r.sendPipelined(ctx, c, server, qs, false)
	for len(unknown) > 0 { // a script may be flushed between two calls of one round trip: the first call has run
		var again error
		unknown, again = r.sendPipelined(ctx, c, server, unknown, true)
		err = cmp.Or(again, err)
	}
	return err
}

// sendPipelined makes one round trip. With text the first call of each script brings that along. It returns what was
// wrong: above all that a reply was another question's, then it is unknown of some whether they were done, then
// that Redis has done nothing, and where it was none of these, those whose scripts Redis does not know.
func (r *Store) sendPipelined(ctx context.Context, c redisconn.Commands, server string, qs []*scriptCall,
	text bool) (unknown []*scriptCall, err error) {
	if len(qs) == 0 {
		return nil, nil
	}
	pipe, sent, told := c.Pipeline(), make([]redisconn.Once, len(qs)), ""
	if text { // each script's errands after each other
		slices.SortStableFunc(qs, func(a, b *scriptCall) int { return cmp.Compare(a.script, b.script) })
	}
	reserves := false
	for i, q := range qs {
		sent[i] = r.command(ctx, q, &server, text && told != q.script)
		told = q.script
		reserves = reserves || q.script == reserveScript
		_ = pipe.Process(ctx, sent[i])
	}
	few := r.execAndWait(ctx, pipe, reserves)
	var lost, mixed, nothing, other error
	for i, q := range qs {
		reply, err := sent[i].Slice()
		q.few = few
		var word redis.Error
		switch {
		case err == nil:
			q.heard, q.err = true, q.decodeReply(reply)
			if errors.Is(q.err, redisconn.ErrReplyMismatch) {
				mixed = q.err
			}
		case !errors.As(err, &word):
			lost = err
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			unknown = append(unknown, q)
		case redisconn.Redirected(err), redis.IsReadOnlyError(err):
			nothing = err
		default:
			q.heard, q.err = true, err
			other = cmp.Or(storeFault(err), other)
		}
	}
	if err := cmp.Or(mixed, lost, nothing); err != nil {
		return nil, err
	}
	return unknown, other
}

// callMany asks about several SKUs, at most together, and returns the errands by position.
func (r *Store) callMany(ctx context.Context, skus []string, errandFor func(sku string) scriptCall) []scriptCall {
	all, fit := make([]scriptCall, len(skus)), make([]*scriptCall, 0, len(skus))
	for i, sku := range skus {
		q := &all[i]
		*q = errandFor(sku)
		if q.err == nil {
			fit = append(fit, q)
		}
	}
	if len(fit) > 0 {
		r.callPipelined(ctx, fit)
	}
	return all
}
