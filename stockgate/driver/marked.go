package driver

import (
	"context"
	"crypto/rand"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// marked takes by HINCRBY, which is undone when it leads below zero, and then sets a mark of the order: whoever finds
// the mark there has come before. The order of the steps errs towards too few: a unit can be gone without a mark, never
// a mark without a unit. After a lost answer the mark decides.
//
// Two steps of many orders are two round trips, and a third undoes. Between them others see the transient numbers.
type marked struct {
	way
	*keys
	l Layout
}

// void is the mark of an order that is none and must not become one.
const void = "void"

func (m *marked) take(ctx context.Context, orders []*order) {
	there := m.known(ctx, orders, func(o *order, w why, err error) { o.why, o.err = w, err })
	low := m.deduct(ctx, there)
	m.undo(ctx, low)
	m.mark(ctx, still(there, taken))
}

// known looks whether there is a stock: HINCRBY would make one. It returns those orders that have one, and tells of each.
func (m *marked) known(ctx context.Context, orders []*order, tell func(*order, why, error)) (there []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = redis.NewStringCmd(ctx, "hget", m.stock.of(o), m.l.LeftField)
	}
	_ = m.send(ctx, cmds) // each command has its own error
	for i, o := range orders {
		switch err := cmds[i].Err(); {
		case err == redis.Nil:
			tell(o, unknown, nil)
		case err != nil:
			tell(o, nothing(err), err)
		default:
			if _, _, err := integer(cmds[i].(*redis.StringCmd).Val()); err != nil {
				tell(o, faulty, err)
				continue
			}
			tell(o, taken, nil)
			there = append(there, o)
		}
	}
	return there
}

// still are those of orders with a why.
func still(orders []*order, w why) (some []*order) {
	for _, o := range orders {
		if o.why == w {
			some = append(some, o)
		}
	}
	return some
}

// deduct takes the units, and returns the orders that went below zero.
func (m *marked) deduct(ctx context.Context, orders []*order) (low []*order) {
	cmds := m.add(ctx, orders, -1)
	for i, o := range orders {
		switch err := cmds[i].Err(); {
		case err != nil:
			o.why, o.err = fail(err), err
		case cmds[i].(*redis.IntCmd).Val() < 0:
			o.why = notEnough
			low = append(low, o)
		}
	}
	return low
}

// add changes the stock by the units of each order.
func (m *marked) add(ctx context.Context, orders []*order, sign int64) []redis.Cmder {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = redis.NewIntCmd(ctx, "hincrby", m.stock.of(o), m.l.LeftField, sign*o.quantity)
	}
	_ = m.send(ctx, cmds) // each command has its own error
	return cmds
}

// undo gives back what was taken for orders that get nothing. What cannot be undone for certain is lost.
func (m *marked) undo(ctx context.Context, orders []*order) {
	for i, cmd := range m.add(ctx, orders, 1) {
		if err := cmd.Err(); err != nil {
			orders[i].why, orders[i].err = unsure, err
		}
	}
}

// mark sets the marks, and undoes what was taken for orders that have one.
func (m *marked) mark(ctx context.Context, orders []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		o.token = rand.Text()
		cmds[i] = m.set(ctx, m.keys.mark.of(o), o.token)
	}
	_ = m.send(ctx, cmds) // each command has its own error
	var again, doubtful []*order
	for i, o := range orders {
		switch err := cmds[i].Err(); {
		case err == redis.Nil:
			o.why = repeated
			again = append(again, o)
		case err != nil && fail(err) != unsure: // it has no mark, and will have none
			o.why, o.err = fail(err), err
			again = append(again, o)
		case err != nil:
			o.why, o.err = unsure, err // the units are gone
			doubtful = append(doubtful, o)
		}
	}
	m.undo(ctx, again)
	m.decide(ctx, doubtful, unsure)
	m.voided(ctx, still(orders, repeated))
}

// set is the command that sets a mark which is not there.
func (m *marked) set(ctx context.Context, key, value string) redis.Cmder {
	return redis.NewStatusCmd(ctx, "set", key, value, "nx", "ex", m.seconds())
}

func (m *marked) seconds() string { return strconv.FormatInt(int64(m.l.MarkTTL.Seconds()), 10) }

// decide asks the marks what became of orders whose answer was lost. Where there is none it leaves one behind, so that
// a command which is still on its way finds that it has come too late; such an order is then what otherwise says.
func (m *marked) decide(ctx context.Context, orders []*order, otherwise why) {
	cmds := make([]redis.Cmder, 0, 2*len(orders))
	for _, o := range orders {
		key := m.keys.mark.of(o)
		cmds = append(cmds, m.set(ctx, key, void), redis.NewStringCmd(ctx, "get", key))
	}
	_ = m.send(ctx, cmds) // what is not answered stays unsure
	for i, o := range orders {
		switch cmds[2*i+1].(*redis.StringCmd).Val() {
		case o.token:
			o.why = taken
		case void:
			o.why = otherwise
		}
	}
}

// voided tells orders that were given back from those that were not.
func (m *marked) voided(ctx context.Context, orders []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = redis.NewStringCmd(ctx, "get", m.keys.mark.of(o))
	}
	_ = m.send(ctx, cmds) // who gets no answer has come before, however it ended
	for i, o := range orders {
		if cmds[i].(*redis.StringCmd).Val() == void {
			o.why = voided
		}
	}
}

// giveBack marks first and adds then, once for each order.
func (m *marked) giveBack(ctx context.Context, orders []*order) {
	orders = m.known(ctx, orders, func(o *order, w why, err error) { o.given, o.err = w, err })
	first := m.markBack(ctx, orders)
	for i, cmd := range m.add(ctx, first, 1) {
		if err := cmd.Err(); err != nil {
			first[i].given, first[i].err = unsure, err // the mark says that it was done
		}
	}
	cmds := make([]redis.Cmder, len(first))
	for i, o := range first {
		cmds[i] = redis.NewStatusCmd(ctx, "set", m.keys.mark.of(o), void, "ex", m.seconds())
	}
	_ = m.send(ctx, cmds) // without it a repetition hears that it came before, and not how that ended
}

// markBack marks that orders are given back, and returns those that were not before.
func (m *marked) markBack(ctx context.Context, orders []*order) (first []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = m.set(ctx, m.keys.mark.of(o)+back, "1")
	}
	_ = m.send(ctx, cmds) // each command has its own error
	for i, o := range orders {
		switch err := cmds[i].Err(); {
		case err == redis.Nil:
			o.given = repeated
		case err != nil:
			o.given, o.err = fail(err), err
		default:
			first = append(first, o)
		}
	}
	return first
}

// markedOnce is marked in one script: nobody sees a transient number, and a lost answer loses no unit, since a script
// that finds the mark takes nothing.
type markedOnce struct {
	scripted
	m *marked
}

func newMarkedOnce(w way, k *keys, l Layout) decision {
	m := &marked{w, k, l}
	return &markedOnce{m: m, scripted: scripted{
		way: w, taking: read("hash_instock"), giving: read("hash_instock_back"),
		keys: func(o *order) []string { return []string{k.stock.of(o), k.mark.of(o)} },
		keysBack: func(o *order) []string {
			mark := k.mark.of(o)
			return []string{k.stock.of(o), mark + back, mark}
		},
		args: func(o *order) []any {
			o.token = rand.Text()
			return []any{o.quantity, l.LeftField, o.token, m.seconds()}
		},
		argsBack: func(o *order) []any { return []any{o.quantity, l.LeftField, "1", m.seconds(), void} },
		read:     codes(map[int64]why{-1: unknown, 0: notEnough, 1: taken, 2: repeated}),
	}}
}

func (s *markedOnce) take(ctx context.Context, orders []*order) {
	s.scripted.take(ctx, orders)
	s.m.decide(ctx, still(orders, unsure), notSent) // by the mark nothing was taken, and nothing will be
	s.m.voided(ctx, still(orders, repeated))
}
