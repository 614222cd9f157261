package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice/stockgate/redisconn"

	"github.com/redis/go-redis/v9"
)

// queueKeys are those of the orders of one SKU that wait, in its slot; queue.lua explains them.
func (r *Store) queueKeys(sku string) []string {
	tag := r.name.SKUKey(sku, "")
	return []string{tag + "w", tag + "o", tag + "a", tag + "t0", tag + "t1", tag + "t2"}
}

// From these places on orders were handed out, or are asked about: LEASED and ASKED of queue.lua.
const (
	leasedFrom = "20000000000000"
	askedFrom  = "30000000000000"
)

// slotsOf stands for a SKU in the keys of slots.lua. No SKU of a shop has blanks.
const slotsOf = "slots of all queues"

// Slots gives back and takes places among all orders that the upstream has at once, of all SKUs and instances.
func (r *Store) Slots(ctx context.Context, c SlotCall) (granted int, err error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	args := []any{r.events, c.Limit, c.Rate, c.For, c.Pause, c.Unused,
		max(c.For, c.Longest), len(c.Free)}
	for _, tokens := range [][]string{c.Free, c.Want} {
		for i := range tokens {
			args = append(args, &tokens[i])
		}
	}
	reply, err := r.call(ctx, &scriptCall{script: "slots", sku: slotsOf, args: args, aside: true, blind: true,
		more: r.queueKeys(slotsOf)})
	if err != nil {
		return 0, fmt.Errorf("take slots: %w", err)
	}
	n, ok := integers(reply, 1)
	if !ok || n[0] < 0 || n[0] > int64(len(c.Want)) {
		return 0, fmt.Errorf("take slots: the reply %v cannot be read", reply)
	}
	return int(n[0]), nil
}

// HandOut hands out the oldest orders that wait, and those that the caller must ask about. Orders that were put off by
// MoveNotNow and are due take every second place, so that neither they nor new ones starve. A process hands out nothing
// before its marks are as old as HandOutAfter.
func (r *Store) HandOut(ctx context.Context, sku string, c HandOutCall) (t HandedOut, err error) {
	defer describe(&err, "take orders of", sku)
	if r.Log.Broken() != nil || r.Seen.markedFor(sku) < r.handOutAfter {
		c.Orders = 0
	}
	q := &scriptCall{script: "hand_out", sku: sku, more: r.queueKeys(sku), args: []any{
		r.events, c.Now, c.Orders, c.Limit, c.Timeout, c.Grace, c.Ask, c.AskFor, c.Longest()}}
	reply, err := r.ask(ctx, c.Check(sku), q)
	if err != nil {
		return t, err
	}
	if t, err = takenOf(reply); err == nil && len(t.Orders) > 0 {
		err = r.Log.HandedOut(sku, q.answered)
	}
	return t, err
}

// takenSize is how many values the reply to hand_out.lua has behind the stock version.
const takenSize = 8

func takenOf(reply []any) (t HandedOut, err error) {
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
	for i, to := range []*[]Leased{&t.Orders, &t.Ask, &t.Expired} {
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

// leasedSize is how many values an order has in a list of hand_out.lua.
const leasedSize = 4

func leasedOf(v []any) (l Leased, err error) {
	serial, ok1 := v[0].(string)
	record, ok2 := v[1].(string)
	entry, ok3 := v[2].(string)
	request, ok4 := v[3].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return l, fmt.Errorf("the order %.100q cannot be read", v)
	}
	kept := strings.SplitN(request, "|", 4) // number, epoch, until, request
	if len(kept) == 4 {
		request = kept[3]
		if !strings.Contains(entry, "|") {
			entry = strings.Join([]string{"1", entry, kept[0], kept[1], kept[2], "1", "0"}, "|")
		}
	}
	if l, err = entryOf(entry); err != nil {
		return l, fmt.Errorf("order %q: %w", serial, err)
	}
	l.Request = request
	l.Record, err = DecodeRecord(serial, record)
	return l, err
}

// entryOf reads what queue.lua writes of an order: attempt|deadline|number|epoch|until|lease|open.
func entryOf(text string) (l Leased, err error) {
	var n [7]int64
	rest := text
	for i := range n {
		var digits string
		digits, rest, _ = strings.Cut(rest, "|")
		if n[i], err = Digits(digits); err != nil {
			return l, fmt.Errorf("the entry %.100q cannot be read", text)
		}
	}
	if rest != "" {
		return l, fmt.Errorf("the entry %.100q cannot be read", text)
	}
	return Leased{Attempt: n[0], Deadline: n[1], Until: n[4], Lease: n[5], Open: n[6] == 1}, nil
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

// Decide says what is to become of orders, one after another; what came of each is by position. All that it confirms
// raise the version by one, and so do all that it releases. It may be repeated after an error.
//
// What it settles is noted like what Finish settles; a release, which may be rejected, only once it is known to be
// done.
func (r *Store) Decide(ctx context.Context, sku string, c DecideCall) (
	done []Done, h StockVersion, err error,
) {
	defer describe(&err, "decide about orders of", sku)
	if err := c.Check(sku); err != nil {
		return nil, h, err
	}
	all := c.Decisions
	args := append(make([]any, 0, 5+6*len(all)), r.events, c.Now, c.Keep, max(c.AnswerFor, 1), len(all))
	for i := range all {
		args = append(args, &all[i].Serial)
	}
	for i := range all {
		args = append(args, &all[i].Answer)
	}
	if slices.ContainsFunc(all, func(d Decision) bool { return d.Move != MoveConfirm }) {
		for i := range all {
			args = append(args, string(all[i].Move), &all[i].Lease, &all[i].Time, &all[i].From)
		}
	}
	if confirmed, _ := of(c.Decisions, nil, MoveConfirm); len(confirmed) > 0 {
		r.Log.Intends(sku, r.Seen.Find(sku).Claim().Epoch, Confirm, confirmed)
	}
	q := &scriptCall{script: "decide", sku: sku, more: r.queueKeys(sku), args: args}
	reply, err := r.call(ctx, q)
	done = make([]Done, len(all))
	if err == nil {
		h, err = decodeAnswers(reply, done, NoLedger)
	}
	if err != nil {
		return nil, h, err
	}
	if reply != nil {
		r.noteDecisions(sku, q.answered, c.Decisions, done)
	}
	return done, h, nil
}

// of are the orders with one of some moves, and what came of them; done nil = that is not known.
func of(all []Decision, done []Done, moves ...Move) (items []Item,
	came []Done) {
	for i := range all {
		if slices.Contains(moves, all[i].Move) {
			items = append(items, Item{Serial: all[i].Serial})
			if done != nil {
				came = append(came, done[i])
			}
		}
	}
	return items, came
}

func (r *Store) noteDecisions(sku string, a Answer, all []Decision, done []Done) {
	if items, came := of(all, done, MoveConfirm); len(items) > 0 {
		r.Corrects(sku, a, Confirm, items, came)
	}
	items, came := of(all, done, MoveRelease, MoveCancel)
	var released []Item
	for i := range items {
		if came[i] == Changed {
			released = append(released, items[i])
		}
	}
	if len(released) > 0 {
		changed := slices.Repeat([]Done{Changed}, len(released))
		r.Log.Intends(sku, a.Epoch, Release, released)
		r.Corrects(sku, a, Release, released, changed)
	}
}

// Positions tells where orders are, by position; at most MaxItems.
func (r *Store) Positions(ctx context.Context, sku string, serials []string) (places []Position, err error) {
	defer describe(&err, "find orders of", sku)
	if err := CheckSKU(sku); err != nil {
		return nil, err
	}
	if len(serials) < 1 || len(serials) > MaxItems {
		return nil, fmt.Errorf("%d serials: 1 to %d are possible", len(serials), MaxItems)
	}
	args := []any{len(serials)}
	for i := range serials {
		args = append(args, &serials[i])
	}
	reply, err := r.call(ctx, &scriptCall{script: "positions", sku: sku, args: args, aside: true, blind: true,
		more: r.queueKeys(sku)})
	if err != nil {
		return nil, err
	}
	if len(reply) != placeSize*len(serials) {
		return nil, fmt.Errorf("%d values came back for %d serials", len(reply), len(serials))
	}
	for i, serial := range serials {
		p, err := placeOf(serial, reply[placeSize*i:])
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	r.findUnknown(ctx, sku, places)
	return places, nil
}

// findUnknown finds out whether the ledger may have lost the orders that it does not know.
func (r *Store) findUnknown(ctx context.Context, sku string, places []Position) {
	var names []OrderName
	var at []*Position
	for i := range places {
		if p := &places[i]; p.Status == StatusNone {
			names, at = append(names, OrderName{SKU: sku, Serial: p.Serial}), append(at, p)
		}
	}
	if len(names) == 0 {
		return
	}
	for i, f := range r.FindAll(ctx, names) {
		at[i].Err = f.Err
	}
}

// placeSize is how many values positions.lua has for each order.
const placeSize = 4

func placeOf(serial string, v []any) (p Position, err error) {
	record, ok1 := v[0].(string)
	where, ok2 := v[1].(string)
	ahead, ok3 := v[2].(int64)
	answer, ok4 := v[3].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return p, fmt.Errorf("the place %v cannot be read", v[:placeSize])
	}
	if record == "" {
		p.Serial = serial
		return p, nil
	}
	p.Where, p.Ahead, p.Answer = Where(where), ahead, answer
	p.Record, err = DecodeRecord(serial, record)
	return p, err
}

// Depths counts the orders of several SKUs, at most MaxTogether, by position.
func (r *Store) Depths(ctx context.Context, skus []string) ([]Depth, error) {
	at, counts := make([]string, len(skus)), make([][4]*redis.IntCmd, len(skus))
	for i, sku := range skus {
		at[i] = r.home(sku)
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c redisconn.Commands, which []int) error {
		pipe := c.Pipeline()
		for _, i := range which {
			k := r.queueKeys(skus[i])[0]
			counts[i] = [4]*redis.IntCmd{pipe.ZCount(ctx, k, "-inf", "("+leasedFrom),
				pipe.ZCount(ctx, k, leasedFrom, "("+askedFrom), pipe.ZCount(ctx, k, askedFrom, "+inf"),
				pipe.ZCount(ctx, k, strconv.FormatInt(Never, 10), "+inf")}
		}
		_, err := pipe.Exec(ctx)
		return err
	}, storeFault)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("count orders that wait: %w", err)
	}
	depths := make([]Depth, len(skus))
	for i, n := range counts {
		if n[0] == nil {
			return nil, fmt.Errorf("count orders that wait: %w", errNoReply)
		}
		depths[i] = Depth{Waiting: n[0].Val(), Leased: n[1].Val(), Asking: n[2].Val(), Stuck: n[3].Val()}
	}
	return depths, nil
}

// Stuck names at most limit orders of a SKU that wait for a person.
func (r *Store) Stuck(ctx context.Context, sku string, limit int) (serials []string, err error) {
	defer describe(&err, "list stuck orders of", sku)
	if err := errors.Join(CheckSKU(sku), checkList(limit)); err != nil {
		return nil, err
	}
	err = r.at(sku).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		serials, err = c.ZRangeArgs(ctx, redis.ZRangeArgs{Key: r.queueKeys(sku)[0], Start: Never, Stop: "+inf",
			ByScore: true, Count: int64(limit)}).Result()
		return err
	}, storeFault)
	return serials, err
}

// Names lists some SKUs in the order of their names, on from a name; "" = from the first. None = there are no more.
// Some may have no ledger.
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
