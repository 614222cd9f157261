package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
)

// queueKeys are those of the orders of one SKU that wait, in its slot; queue.lua explains them.
func queueKeys(sku string) []string {
	tag := "sluice:{" + sku + "}:"
	return []string{tag + "w", tag + "l", tag + "o", tag + "a", tag + "k"}
}

// answerKey is where the upstream's answer to one order is kept. It expires.
func answerKey(sku, serial string) string { return "sluice:{" + sku + "}:t:" + serial }

// slotsOf stands for a SKU in the keys of slots.lua. No SKU of a shop has blanks.
const slotsOf = "slots of all queues"

// Slots implements protocol.Queue.
func (r *Store) Slots(ctx context.Context, c protocol.SlotCall) (granted int, err error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	sku := r.prefix + slotsOf
	args := []any{r.events, c.Limit, c.Rate, c.For, c.Pause, c.Unused, len(c.Free)}
	for _, tokens := range [][]string{c.Free, c.Want} {
		for i := range tokens {
			args = append(args, &tokens[i])
		}
	}
	reply, err := r.call(ctx, &scriptCall{script: "slots", sku: sku, args: args, aside: true, blind: true,
		more: queueKeys(sku)})
	if err != nil {
		return 0, fmt.Errorf("take slots: %w", err)
	}
	n, ok := integers(reply, 1)
	if !ok || n[0] < 0 || n[0] > int64(len(c.Want)) {
		return 0, fmt.Errorf("take slots: the reply %v cannot be read", reply)
	}
	return int(n[0]), nil
}

// Take implements protocol.Queue.
func (r *Store) Take(ctx context.Context, sku string, c protocol.TakeCall) (t protocol.Taken, err error) {
	if err := c.Check(sku); err != nil {
		return t, fmt.Errorf("take orders of %q: %w", sku, err)
	}
	reply, err := r.call(ctx, &scriptCall{script: "take", sku: sku, more: queueKeys(sku), args: []any{
		r.events, c.Now, c.Orders, c.Limit, c.Timeout, c.Grace, c.Ask, c.AskFor, c.Longest()}})
	if err == nil && reply == nil {
		err = r.noLedger(ctx, sku)
	}
	if err == nil {
		t, err = takenOf(reply)
	}
	if err != nil {
		return t, fmt.Errorf("take orders of %q: %w", sku, err)
	}
	return t, nil
}

// takenSize is how many values the reply to take.lua has behind the hint.
const takenSize = 8

func takenOf(reply []any) (t protocol.Taken, err error) {
	unreadable := fmt.Errorf("the reply of %d values cannot be read", len(reply))
	if len(reply) != versionSize+takenSize {
		return t, unreadable
	}
	if t.StockVersion, err = versionOf(reply); err != nil {
		return t, err
	}
	n, ok := integers(reply[versionSize:versionSize+5], 5)
	if !ok {
		return t, unreadable
	}
	t.Waiting, t.Leased, t.Asking, t.Delivered, t.Oldest = n[0], n[1], n[2], n[3], n[4]
	for i, to := range []*[]protocol.Leased{&t.Orders, &t.Ask, &t.Expired} {
		list, ok := reply[versionSize+5+i].([]any)
		if !ok || len(list)%leasedSize != 0 {
			return t, unreadable
		}
		for ; len(list) > 0; list = list[leasedSize:] {
			l, err := leasedOf(list[:leasedSize])
			if err != nil {
				return t, err
			}
			*to = append(*to, l)
		}
	}
	return t, nil
}

// leasedSize is how many values an order has in a list of take.lua.
const leasedSize = 8

func leasedOf(v []any) (l protocol.Leased, err error) {
	serial, ok1 := v[0].(string)
	record, ok2 := v[1].(string)
	attempt, ok3 := v[2].(int64)
	text, ok4 := v[3].(string)
	until, ok5 := v[4].(int64)
	lease, ok6 := v[5].(int64)
	open, ok7 := v[6].(int64)
	request, ok8 := v[7].(string)
	deadline, err := strconv.ParseInt(text, 10, 64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || !ok7 || !ok8 || err != nil {
		return l, fmt.Errorf("the order %.100q cannot be read", v)
	}
	l = protocol.Leased{Attempt: attempt, Lease: lease, Deadline: deadline, Until: until, Open: open == 1,
		Request: request}
	l.Record, err = protocol.DecodeRecord(serial, record)
	return l, err
}

// integers reads n numbers.
func integers(reply []any, n int) (all []int64, ok bool) {
	for _, v := range reply {
		i, ok := v.(int64)
		if !ok {
			return nil, false
		}
		all = append(all, i)
	}
	return all, len(all) == n
}

// Decide implements protocol.Queue. What it settles is noted like what Finish settles; a release, which may be
// rejected, only once it is known to be done.
func (r *Store) Decide(ctx context.Context, sku string, d protocol.Decision) (
	done protocol.Done, h protocol.StockVersion, err error,
) {
	if err := d.Check(sku); err != nil {
		return 0, h, fmt.Errorf("%s %q of %q: %w", d.Move, d.Serial, sku, err)
	}
	items := []protocol.Item{{Serial: d.Serial}}
	if d.Move == protocol.MoveConfirm {
		r.Log.Intends(sku, r.Seen.Find(sku).Claim().Epoch, protocol.Confirm, items)
	}
	q := &scriptCall{script: "decide", sku: sku, more: append(queueKeys(sku), answerKey(sku, d.Serial)), args: []any{
		r.events, d.Now, d.Keep, d.Serial, string(d.Move), d.Lease, d.Time, d.Answer, max(d.AnswerMS, 1), d.From}}
	reply, err := r.call(ctx, q)
	if err == nil && reply == nil {
		return protocol.NoLedger, h, nil
	}
	answers := make([]protocol.Done, 1)
	if err == nil {
		h, err = decodeAnswers(reply, answers, protocol.NoLedger)
	}
	if err != nil {
		return 0, h, fmt.Errorf("%s %q of %q: %w", d.Move, d.Serial, sku, err)
	}
	r.noteDecision(sku, failover.Answer{Call: q.seq, Epoch: h.Epoch, Ver: h.Ver}, d.Move, items, answers)
	return answers[0], h, nil
}

func (r *Store) noteDecision(sku string, a failover.Answer, move protocol.Move, items []protocol.Item,
	done []protocol.Done) {
	switch move {
	case protocol.MoveConfirm:
		r.Log.Corrects(sku, a, protocol.Confirm, items, done)
	case protocol.MoveRelease, protocol.MoveCancel:
		if done[0] == protocol.Changed {
			r.Log.Intends(sku, a.Epoch, protocol.Release, items)
			r.Log.Corrects(sku, a, protocol.Release, items, done)
		}
	}
}

// Places implements protocol.Queue.
func (r *Store) Places(ctx context.Context, sku string, serials []string) (places []protocol.Place, err error) {
	if err = protocol.CheckSKU(sku); err == nil && (len(serials) < 1 || len(serials) > protocol.MaxItems) {
		err = fmt.Errorf("%d serials: 1 to %d are possible", len(serials), protocol.MaxItems)
	}
	var reply []any
	if err == nil {
		args := []any{len(serials)}
		for i := range serials {
			args = append(args, &serials[i])
		}
		reply, err = r.call(ctx, &scriptCall{script: "places", sku: sku, args: args, aside: true, blind: true,
			more: queueKeys(sku)})
	}
	if err == nil && len(reply) != placeSize*len(serials) {
		err = fmt.Errorf("%d values came back for %d serials", len(reply), len(serials))
	}
	for i := 0; err == nil && i < len(serials); i++ {
		var p protocol.Place
		p, err = placeOf(serials[i], reply[placeSize*i:])
		places = append(places, p)
	}
	if err != nil {
		return nil, fmt.Errorf("find orders of %q: %w", sku, err)
	}
	return places, nil
}

// placeSize is how many values places.lua has for each order.
const placeSize = 3

func placeOf(serial string, v []any) (p protocol.Place, err error) {
	record, ok1 := v[0].(string)
	where, ok2 := v[1].(string)
	ahead, ok3 := v[2].(int64)
	if !ok1 || !ok2 || !ok3 {
		return p, fmt.Errorf("the place %v cannot be read", v[:placeSize])
	}
	if record == "" {
		p.Serial = serial
		return p, nil
	}
	p.Where, p.Ahead = protocol.Where(where), ahead
	p.Record, err = protocol.DecodeRecord(serial, record)
	return p, err
}

// Answer implements protocol.Queue.
func (r *Store) Answer(ctx context.Context, sku, serial string) (text string, err error) {
	if err = errors.Join(protocol.CheckSKU(sku), protocol.CheckSerial(serial)); err == nil {
		err = r.at(sku).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			text, err = c.Get(ctx, answerKey(sku, serial)).Result()
			if errors.Is(err, redis.Nil) {
				return nil
			}
			return err
		}, fault)
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read the answer to %q: %w", serial, err)
	}
	return text, nil
}

// Depths implements protocol.Queue.
func (r *Store) Depths(ctx context.Context, skus []string) ([]protocol.Depth, error) {
	at, counts := make([]string, len(skus)), make([][4]*redis.IntCmd, len(skus))
	for i, sku := range skus {
		at[i] = home(sku)
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c *redis.Client, which []int) error {
		pipe := c.Pipeline()
		for _, i := range which {
			k := queueKeys(skus[i])
			never := strconv.FormatInt(protocol.Never, 10)
			counts[i] = [4]*redis.IntCmd{pipe.ZCard(ctx, k[0]), pipe.ZCard(ctx, k[1]), pipe.ZCard(ctx, k[4]),
				pipe.ZCount(ctx, k[4], never, "+inf")}
		}
		_, err := pipe.Exec(ctx)
		return err
	}, fault)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("count orders that wait: %w", err)
	}
	depths := make([]protocol.Depth, len(skus))
	for i, n := range counts {
		if n[0] == nil {
			return nil, fmt.Errorf("count orders that wait: %w", errNoReply)
		}
		depths[i] = protocol.Depth{Waiting: n[0].Val(), Leased: n[1].Val(), Asking: n[2].Val(), Stuck: n[3].Val()}
	}
	return depths, nil
}

// Stuck implements protocol.Queue.
func (r *Store) Stuck(ctx context.Context, sku string, limit int) (serials []string, err error) {
	if err = errors.Join(protocol.CheckSKU(sku), protocol.CheckList(limit)); err == nil {
		err = r.at(sku).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			serials, err = c.ZRangeArgs(ctx, redis.ZRangeArgs{Key: queueKeys(sku)[4], Start: protocol.Never, Stop: "+inf",
				ByScore: true, Count: int64(limit)}).Result()
			return err
		}, fault)
	}
	if err != nil {
		return nil, fmt.Errorf("list stuck orders of %q: %w", sku, err)
	}
	return serials, nil
}

// Names implements protocol.Queue.
func (r *Store) Names(ctx context.Context, after string) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	names, err := r.listNames(ctx, from, 2*listPage)
	if err != nil {
		return nil, fmt.Errorf("list skus: %w", err)
	}
	return names, nil
}
