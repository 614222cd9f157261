package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/link"
)

// askTogether does what ask does for each of several errands, at most together, of as many SKUs: in one round trip to each
// server that has some of them. What fails for one of them harms no other.
func (r *Redis) askTogether(ctx context.Context, qs []*errand) {
	at := make([]string, len(qs))
	for i, q := range qs {
		r.setOut(q)
		at[i] = q.keys[0]
	}
	errs := r.link.AskEach(ctx, at, func(ctx context.Context, c *redis.Client, server string, which []int) error {
		r.meet(server)
		left := make([]*errand, 0, len(which))
		for _, i := range which {
			switch q := qs[i]; {
			case q.heard:
			case q.late(): // and nobody has run it, or this would not be asked again
				q.heard, q.err = true, link.ErrNoTurn
				q.end()
			default:
				left = append(left, q)
			}
		}
		err := r.evalTogether(ctx, c, server, left)
		for _, q := range left {
			if q.heard {
				_, q.err = r.comeBack(q, q.err)
				q.end()
			}
		}
		return err
	}, fault)
	for i, q := range qs {
		if q.heard {
			continue
		}
		if q.err = errUnheard; errs != nil && errs[i] != nil {
			q.err = errs[i]
		}
		q.end()
	}
}

// end says that it is known what came of q.
func (q *errand) end() {
	if q.done != nil {
		q.done()
	}
	if q.back != nil {
		close(q.back)
	}
}

// late reports whether q has no time any more to be sent.
func (q *errand) late() bool { return q.back != nil && !time.Now().Before(q.until) }

// errUnheard is the cause when Redis has not said what became of an errand, nor why.
var errUnheard = errors.New("redis has not answered")

// evalTogether makes one round trip, and one more for those of which Redis says that it does not know their scripts: it has
// run nothing of them, and takes the text of each script.
func (r *Redis) evalTogether(ctx context.Context, c *redis.Client, server string, qs []*errand) error {
	unknown, err := r.sendTogether(ctx, c, server, qs, false)
	if len(unknown) > 0 {
		_, again := r.sendTogether(ctx, c, server, unknown, true)
		err = cmp.Or(again, err)
	}
	return err
}

// sendTogether makes one round trip. With text the first errand of each script brings that along. It returns what was wrong: above all
// that a reply was another question's, then that of some nobody knows whether they were done, then that Redis has done nothing,
// and where it was none of these, those whose scripts Redis does not know.
func (r *Redis) sendTogether(ctx context.Context, c *redis.Client, server string, qs []*errand, text bool) (unknown []*errand, err error) {
	if len(qs) == 0 {
		return nil, nil
	}
	pipe, sent, told := c.Pipeline(), make([]once, len(qs)), ""
	if text { // each script's errands after each other
		slices.SortStableFunc(qs, func(a, b *errand) int { return cmp.Compare(a.script, b.script) })
	}
	for i, q := range qs {
		sent[i] = r.command(ctx, q, &server, text && told != q.script)
		told = q.script
		_ = pipe.Process(ctx, sent[i])
	}
	_, _ = pipe.Exec(ctx) // the errors are the commands' own
	var lost, mixed, nothing, other error
	for i, q := range qs {
		reply, err := sent[i].Slice()
		var word redis.Error
		switch {
		case err == nil:
			q.heard, q.err = true, q.hear(reply)
			if errors.Is(q.err, link.ErrMixedUp) {
				mixed = q.err
			}
		case !errors.As(err, &word):
			lost = err
		case redis.HasErrorPrefix(err, "NOSCRIPT") && !text:
			unknown = append(unknown, q)
		case link.Elsewhere(err), redis.IsReadOnlyError(err):
			nothing = err
		default:
			q.heard, q.err = true, err
			other = cmp.Or(fault(err), other)
		}
	}
	if err := cmp.Or(mixed, lost, nothing); err != nil {
		return nil, err
	}
	return unknown, other
}

// askAll asks about several SKUs, at most together, and returns the errands by position. tell, unless it is nil, hears of each
// as soon as it is known what came of it, on whichever goroutine.
func (r *Redis) askAll(ctx context.Context, skus []string, errandFor func(sku string) errand, tell func(i int, q *errand)) []errand {
	all, fit := make([]errand, len(skus)), make([]*errand, 0, len(skus))
	for i, sku := range skus {
		q := &all[i]
		*q = errandFor(sku)
		if tell != nil {
			q.done = func() { tell(i, q) }
		}
		if q.err != nil {
			q.end()
			continue
		}
		fit = append(fit, q)
	}
	if len(fit) > 0 {
		r.askTogether(ctx, fit)
	}
	return all
}
