package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/stockgate/redisconn"
)

// So many SKUs are named at once when the store cannot be asked about them, and one more after each pause: where
// Redis itself is in trouble all are.
const (
	faultNameDepth    = 5
	faultNameInterval = int64(10 * time.Second)
)

// fault is whether the log says that calls of one kind are not answered.
type fault struct {
	logged     bool
	since      int64 // ns
	answeredAt int64 // ns: when the newest call that was answered began
}

// reportTaking logs once for a SKU that the store takes no orders, and why, until it does. err is what a call that
// began at began ns came to, nil when an open ledger has answered it. mu is held.
func (r *core) reportTaking(q *skuQueue, began int64, err error) {
	if err != nil && began >= q.faults.taking.answeredAt && r.ctx.Err() == nil {
		r.untaken.Store(&untaken{r.o.Now(), q.sku, err})
	}
	r.report(&q.faults.taking, q.sku, began, err, "the ledger takes no orders: they are rejected with stock_error",
		"the ledger takes orders again")
}

// untaken is a call with which the store took no orders.
type untaken struct {
	at  int64 // ns
	sku string
	err error
}

// untakenFor is how long such a call is told of.
const untakenFor = int64(10 * time.Second)

// Untaken says that the store took no orders within the last seconds, why, and what to do; "" = it took all.
func (r *Reserver) Untaken() string {
	u := r.untaken.Load()
	if u == nil || r.o.Now()-u.at > untakenFor {
		return ""
	}
	return fmt.Sprintf("orders of %q were rejected with stock_error: %v; %s", u.sku, u.err, adviceFor(u.err))
}

// reportSettling is reportTaking of settlements.
func (r *core) reportSettling(q *skuQueue, began int64, err error) {
	r.report(&q.faults.settling, q.sku, began, err, "the ledger settles no orders: those in flight are settled later",
		"the ledger settles orders again")
}

// report is about one kind of calls. They overlap: one that began before the fault was found does not end it, and one
// that began before another that was answered is no fault.
func (r *core) report(f *fault, sku string, began int64, err error, begins, ends string) {
	now := r.o.Now()
	if err == nil {
		f.answeredAt = max(f.answeredAt, began)
	}
	switch {
	case err == nil && f.logged && began >= f.since:
		f.logged = false
		r.o.Log.Info(ends, "sku", sku)
	case err == nil, f.logged, began < f.answeredAt, r.ctx.Err() != nil:
	case r.faultNames.take(now):
		f.logged, f.since = true, now
		r.o.Log.Error(begins, "sku", sku, "err", err, "fix", adviceFor(err))
	}
}

// adviceFor says what an operator does about err.
func adviceFor(err error) string {
	text := err.Error()
	if errors.Is(err, ErrLost) {
		return "run the command that err ends with: the journal has these settlements, and recovery applies them"
	}
	for _, f := range [...]struct{ word, advice string }{
		{"OOM ", "redis has no memory left: raise maxmemory (redis-cli CONFIG SET maxmemory …), and never let it evict"},
		{"NOREPLICAS ", "too few replicas are in step (min-replicas-to-write): start them; if they are the ones that " +
			"sell, this master was replaced"},
		{"MISCONF ", "redis cannot write to its disk: make room, then redis-cli BGSAVE"},
		{"READONLY ", "this redis is a replica: write its master's address, or the sentinels', into stock.redis.addresses"},
		{"CLUSTERDOWN ", "a part of the cluster has no master: redis-cli CLUSTER NODES tells which; set " +
			"cluster-require-full-coverage no"},
		{"WRONGPASS ", "the user or the password of stock.redis is not valid any more: write the new password into " +
			"stock.redis.password_file, which is read for each new connection"},
		{"NOAUTH ", "redis wants a password: write stock.redis.password_file, and restart"},
		{"NOPERM ", "this user lacks rights: sluice check --online names them"},
		{"LOADING ", "redis reads its file and goes on by itself"},
		{"BUSY ", "a script blocks redis: redis-cli SCRIPT KILL"},
		{"TRYAGAIN ", "a slot is on its way to another server, and goes on by itself; move slots before a sale"},
		{"user_script", "a key of this ledger was changed by another program: freeze the SKU and repair the key that is " +
			"named, or make the ledger anew"},
	} {
		if strings.Contains(text, f.word) {
			return f.advice
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded),
		strings.Contains(text, "timeout"), strings.Contains(text, "deadline exceeded"):
		return "redis does not answer in time: redis-cli SLOWLOG GET, and look at its machine and the network; it " +
			"goes on by itself"
	case strings.Contains(text, "dial "):
		return redisconn.Remedy(err)
	}
	return "look at redis and the way to it: sluice check --online; it goes on by itself"
}
