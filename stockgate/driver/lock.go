package driver

import (
	"context"
	crypto "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// lock takes from a string under a lock that all who decide share: a key with a token and a time-out, removed only by
// whoever put the token there. Each holder draws a number, and writes only while nobody has drawn a later one: a holder
// that slept through its time-out writes nothing.
type lock struct {
	way
	*keys
}

const (
	lockFor   = 3 * time.Second // longer than the few round trips that it is held for
	lockTries = 50
	lockPause = 4 * time.Millisecond // between two tries, on average: those who wait come at different moments
)

func (l *lock) take(ctx context.Context, orders []*order) {
	l.each(ctx, orders, 1, func(o *order, w why, err error) { o.why, o.err = w, err })
}

func (l *lock) giveBack(ctx context.Context, orders []*order) {
	l.each(ctx, orders, -1, func(o *order, w why, err error) { o.given, o.err = w, err })
}

// each writes for all orders of a SKU while its lock is held once.
func (l *lock) each(ctx context.Context, orders []*order, sign int64, tell func(*order, why, error)) {
	eachSKU(l.known(ctx, orders, tell), func(of []*order) {
		token := crypto.Text()
		number, why, err := l.hold(ctx, of[0], token)
		if why != taken {
			for _, o := range of {
				tell(o, why, err)
			}
			return
		}
		l.write(ctx, of, number, sign, tell)
		l.end(ctx, of[0], token)
	})
}

// known finds those orders that have a stock, and tells the others. Clients invent SKUs: no lock is taken of one, and no
// number drawn that would stay behind.
func (l *lock) known(ctx context.Context, orders []*order, tell func(*order, why, error)) (there []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = redis.NewIntCmd(ctx, "exists", l.stock.of(o))
	}
	_ = l.send(ctx, cmds) // each command has its own error
	for i, o := range orders {
		switch err := cmds[i].Err(); {
		case err != nil:
			tell(o, nothing(err), err)
		case cmds[i].(*redis.IntCmd).Val() == 0:
			tell(o, unknown, nil)
		default:
			there = append(there, o)
		}
	}
	return there
}

// hold takes the lock, and draws a number. Without both nothing was written.
func (l *lock) hold(ctx context.Context, o *order, token string) (number int64, found why, err error) {
	key := l.keys.lock.of(o)
	for try := 0; ; try++ {
		set := redis.NewStatusCmd(ctx, "set", key, token, "nx", "px", lockFor.Milliseconds())
		switch err := l.send(ctx, []redis.Cmder{set}); {
		case err != nil:
			l.end(ctx, o, token) // it may be held
			return 0, notSent, err
		case set.Err() == nil:
			draw := redis.NewIntCmd(ctx, "incr", key+Fence)
			if _ = l.send(ctx, []redis.Cmder{draw}); draw.Err() != nil {
				l.end(ctx, o, token)
				return 0, nothing(draw.Err()), draw.Err()
			}
			return draw.Val(), taken, nil
		case set.Err() != redis.Nil:
			return 0, faulty, set.Err()
		}
		if try == lockTries || !pause(ctx, rand.N(2*lockPause)) {
			return 0, contended, nil
		}
	}
}

// write changes the stock for each order.
func (l *lock) write(ctx context.Context, orders []*order, number, sign int64, tell func(*order, why, error)) {
	script, calls := read("lock_write"), make([]*call, len(orders))
	for i, o := range orders {
		keys := []string{l.stock.of(o), l.keys.lock.of(o) + Fence}
		calls[i] = &call{script: script, keys: keys, args: []any{sign * o.quantity, number}}
	}
	l.run(ctx, calls)
	reading := codes(map[int64]why{-2: contended, -1: unknown, 0: notEnough, 1: taken})
	for i, o := range orders {
		found, err := verdict(calls[i], o, reading)
		tell(o, found, err)
	}
}

// end removes the lock if it is still this token's. If that fails its time-out does.
func (l *lock) end(ctx context.Context, o *order, token string) {
	l.run(ctx, []*call{{script: read("lock_end"), keys: []string{l.keys.lock.of(o)}, args: []any{token}}})
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
