package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// errFewReplicas is the cause when it was done, but too few replicas had it in time: a fail-over could undo it.
var errFewReplicas = errors.New("too few replicas have it")

// replicated refuses what cannot be waited for, and fills in how long.
func (o *RedisOptions) replicated() error {
	if o.Replicas < 0 {
		return errors.New("replicas: it must not be negative")
	}
	if o.Replicas == 0 {
		return nil
	}
	if o.ReplicaWait == 0 {
		o.ReplicaWait = max(o.Timeout/2, time.Millisecond).Truncate(time.Millisecond)
	}
	if o.ReplicaWait < time.Millisecond || o.ReplicaWait >= o.Timeout {
		return fmt.Errorf("replica wait %v: it must be at least 1 ms and less than the timeout %v", o.ReplicaWait, o.Timeout)
	}
	return nil
}

// evalReplicated calls a script with a WAIT behind it, on its connection and in its round trip: whether the batch has
// a winner is not known before. Where it has none Redis has nothing to wait for, unless replicas are away; then losers
// wait as well. A Redis before 7.2 waits for all that was written until then, by anybody; a later one for what this
// connection wrote: the mark, at least, which every call leaves. As ever, only NOSCRIPT lets it send again.
func (r *Redis) evalReplicated(ctx context.Context, c *redis.Client, q *errand, server *string) (reply []any, few, err error) {
	for _, text := range []bool{false, true} {
		reply, few, err = r.evalAndWait(ctx, c, r.command(ctx, q, server, text))
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			break
		}
	}
	return reply, few, err
}

// evalAndWait makes one round trip of both.
func (r *Redis) evalAndWait(ctx context.Context, c *redis.Client, script once) (reply []any, few, err error) {
	pipe := c.Pipeline()
	_ = pipe.Process(ctx, script) // the errors are the commands' own
	wait := pipe.Do(ctx, "wait", r.replicas, r.replicaWait.Milliseconds())
	_, _ = pipe.Exec(ctx)
	if reply, err = script.Slice(); err != nil {
		return nil, nil, err
	}
	switch n, err := wait.Int(); {
	case err != nil:
		few = fmt.Errorf("%w: wait: %w", errFewReplicas, err)
	case n < r.replicas:
		few = fmt.Errorf("%w: %d of %d", errFewReplicas, n, r.replicas)
	}
	return reply, few, nil
}

// holds reports whether any order is held, now or since an earlier sending.
func holds(codes []Code) bool {
	return slices.Contains(codes, Held) || slices.Contains(codes, ReplayHeld)
}

// replicated takes in whether enough replicas have what b holds. If not, no order of b is forwarded: a fail-over could
// sell its unit again. The master has the holds, so that they are strays.
func (d *Desk) replicated(l *line, b *round, few bool) {
	switch {
	case few:
		b.distrust()
		d.thin.Add(1)
		if !d.thinned.Swap(true) {
			d.o.Log.Error("too few replicas have the newest reservations: orders are refused, and their units given back", "sku", l.sku)
		}
	case holds(b.codes) && d.thinned.Load() && d.thinned.Swap(false):
		d.o.Log.Info("enough replicas have the newest reservations again", "sku", l.sku)
	}
}

// distrust makes what was held just now unsure, so that nobody is told of it, and it is given back.
func (b *round) distrust() {
	for i, code := range b.codes {
		if code == Held {
			b.codes[i] = Unsure
		}
	}
}
