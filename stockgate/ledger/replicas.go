package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/stockgate/redisconn"
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

// evalAndWait calls a script with a WAIT behind it, on its connection and in its round trip: whether the batch has a
// winner is not known before. Where it has none Redis has nothing to wait for, unless replicas are away; then losers
// wait as well. A Redis before 7.2 waits for all that was written until then, by anybody; a later one for what this
// connection wrote: the mark, at least, which every call leaves.
func (r *Store) evalAndWait(ctx context.Context, c redisconn.Commands, script redisconn.Once) (few error) {
	pipe := c.Pipeline()
	_ = pipe.Process(ctx, script) // the errors are the commands' own
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
