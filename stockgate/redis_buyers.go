package stockgate

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Bought asks in one pipeline which of all have bought before. What is wrong with one SKU's set is the Fault of its
// buyers; an error means that nothing was learnt. The layout must have users, as HasUsers tells.
func (r *Redis) Bought(ctx context.Context, all []Buyer) error {
	l := r.layout.Load()
	return r.call(ctx, bought, len(all), func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		for i := range all {
			l.QueueBought(ctx, pipe, all[i].SKU, all[i].User)
		}
		answers, err := exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read buyers: %w", err)
		}
		for i := range all {
			all[i].Bought, all[i].Fault = l.ReadBought(all[i].SKU, answers[i])
		}
		return nil
	})
}

// HasUsers reports whether the shop keeps a set of the users who have bought.
func (r *Redis) HasUsers() bool { return r.layout.Load().HasUsers() }
