package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicated rejects what cannot be waited for, and fills in how long.
func (o *StoreOptions) replicated() error {
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

// execAndWait sends a pipeline, with a WAIT behind it if it reserves, on its connection and in its round trip: whether
// a batch has a winner is not known before. Where it has none Redis has nothing to wait for, unless replicas are away;
// then losers wait as well. A Redis before 7.2 waits for all that was written until then, by anybody; a later one for
// what this connection wrote: the mark, at least, which every call leaves. The error is about replicas; others are the
// commands' own.
func (r *Store) execAndWait(ctx context.Context, pipe redis.Pipeliner, reserves bool) (few error) {
	if r.replicas == 0 || !reserves {
		_, _ = pipe.Exec(ctx)
		return nil
	}
	wait := pipe.Do(ctx, "wait", r.replicas, r.replicaWait.Milliseconds())
	_, _ = pipe.Exec(ctx)
	switch n, err := wait.Int(); {
	case err != nil:
		return fmt.Errorf("%w: wait: %w", ErrFewReplicas, err)
	case n < r.replicas:
		return fmt.Errorf("%w: %d of %d", ErrFewReplicas, n, r.replicas)
	}
	return nil
}
