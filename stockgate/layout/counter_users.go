package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// counterUsers is a counter beside a set of the users who have bought, as in "{1001}:{88}:stock" = "500" and
// "{1001}:{88}:uids". The shop decides by both in one script. Any other layout may have such a set as well.
func counterUsers(o Options) (shape, error) {
	if o.UsersKey == "" {
		return shape{}, errors.New("users_key: the layout counter_users needs it")
	}
	return counter(), nil
}

// HasUsers reports whether the shop keeps a set of the users who have bought a SKU.
func (l *Layout) HasUsers() bool { return l.users != nil }

// QueueBought puts the one command into pipe that asks whether user has bought sku.
func (l *Layout) QueueBought(ctx context.Context, pipe redis.Pipeliner, sku string, user []byte) {
	pipe.SIsMember(ctx, l.users.Of(sku, l.parts), user)
}

// ReadBought turns the answer to the command of QueueBought into yes, no or a fault of the set.
func (l *Layout) ReadBought(sku string, answer redis.Cmder) (bought bool, fault error) {
	bought, err := answer.(*redis.BoolCmd).Result()
	if err != nil {
		return false, fmt.Errorf("read %q: %w", l.users.Of(sku, l.parts), err)
	}
	return bought, nil
}
