package stockgate

import (
	"context"
	"fmt"
	"slices"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// Bought asks in one pipeline which of all have bought before. What is wrong with one SKU's set is the Fault of its
// buyers; an error means that nothing was learnt. In a layout without users no user has bought.
func (r *Redis) Bought(ctx context.Context, all []Buyer) error {
	l, skus := r.layout.Load(), make([]string, len(all))
	if !l.HasUsers() {
		return nil
	}
	for i := range all {
		skus[i] = all[i].SKU
	}
	errs := r.each(ctx, bought, 1, skus, func(ctx context.Context, c redisconn.Commands, which []int) error {
		pipe := c.Pipeline()
		// who could have bought that?
		which = slices.DeleteFunc(slices.Clone(which), func(i int) bool { return !l.Fits(all[i].SKU) })
		for _, i := range which {
			l.QueueBought(ctx, pipe, all[i].SKU, all[i].User)
		}
		answers, err := exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read buyers: %w", err)
		}
		for k, i := range which {
			all[i].Bought, all[i].Fault = l.ReadBought(all[i].SKU, answers[k])
		}
		return nil
	})
	faults := make([]layout.Reading, len(all))
	if err := spread(errs, faults); err != nil {
		return err
	}
	for i := range all {
		if faults[i].Fault != nil {
			all[i].Fault = faults[i].Fault
		}
	}
	return nil
}
