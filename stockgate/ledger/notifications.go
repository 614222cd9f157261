package ledger

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
	"sluice/stockgate/redisconn"
)

const (
	subscriptionTimeout = time.Second // silence after which the subscription is tried; after as much more it is a dead one
	firstSubscribe      = 25 * time.Millisecond
	lastSubscribe       = 2 * time.Second
)

// channel is where all stores of a name tell, and hear, the notifications of a database. PUBLISH itself reaches all
// databases, where other ledgers may lie.
func channel(n redisconn.Name, db int) string {
	if db == 0 {
		return n.Key("news")
	}
	return n.Key("news:" + strconv.Itoa(db))
}

// Listen calls hear with each notification until ctx ends, and missed whenever some may have been lost: each time
// the subscription begins. Both are called from this goroutine. It subscribes again after every fault, ever more
// slowly, at most every lastSubscribe; without the right to do so none come.
func (r *Store) Listen(ctx context.Context, hear func(sku string, h StockVersion), missed func()) {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never fails; the simulation makes it repeat
	jitter := rand.New(rand.NewChaCha8(seed))
	wait := firstSubscribe
	for ctx.Err() == nil {
		if r.listen(ctx, hear, missed) {
			wait = firstSubscribe
		}
		periodic.Pause(ctx, wait/2+time.Duration(jitter.Int64N(int64(wait/2)))) // many instances lost it at the same time
		wait = min(2*wait, lastSubscribe)
	}
}

// listen subscribes, and hears until the first fault. It reports whether Redis spoke at all after it had agreed.
func (r *Store) listen(ctx context.Context, hear func(string, StockVersion), missed func()) (heard bool) {
	sub, err := r.subscribe(ctx)
	if err != nil {
		return false
	}
	defer sub.Close()
	ctx = redisconn.ClosedWith(ctx, ctx) // where it connects again
	missed()
	for tried := false; ctx.Err() == nil; {
		message, err := sub.ReceiveTimeout(ctx, subscriptionTimeout)
		switch {
		case timedOut(err) && !tried:
			tried = true
			if sub.Ping(ctx) != nil {
				return heard
			}
			continue
		case err != nil:
			return heard
		}
		heard, tried = true, false
		switch m := message.(type) {
		case *redis.Message:
			if sku, h, err := decodeNotification(m.Payload); err == nil {
				r.Seen.HearSale(sku, h.Sale)
				hear(sku, h)
			}
		case *redis.Subscription: // the client connected again by itself
			missed()
		}
	}
	return heard
}

// timedOut reports whether nothing came in time.
func timedOut(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// subscribe opens a connection for notifications alone, which is closed when listening ends.
func (r *Store) subscribe(listening context.Context) (sub redisconn.Subscription, err error) {
	err = r.link.Do(listening, func(ctx context.Context, c redisconn.Commands) (err error) {
		sub, err = redisconn.Subscribe(redisconn.ClosedWith(ctx, listening), c, r.channel, subscriptionTimeout)
		return err
	}, redisconn.Unanswered)
	return sub, err
}

// decodeNotification reads what stock.lua publishes: the words of a stock version and the SKU, with bars between them.
// The SKU comes last since it may hold any byte.
func decodeNotification(text string) (sku string, h StockVersion, err error) {
	words := strings.SplitN(text, "|", versionSize+1)
	if len(words) != versionSize+1 {
		return "", StockVersion{}, fmt.Errorf("the notification %.64q cannot be read", text)
	}
	reply := make([]any, versionSize)
	for i, word := range words[:versionSize] {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			reply[i] = n
		} else {
			reply[i] = word
		}
	}
	sku = words[versionSize]
	if err := CheckSKU(sku); err != nil {
		return "", StockVersion{}, err
	}
	h, err = versionOf(reply)
	return sku, h, err
}

// Notifications are changes after which a client that was rejected may buy, or no client may any more: units that came
// back while fewer than 256 were free, other hours, and another state. Reservations and confirmations are none: an
// instance that needs to know of them hears of them in a reply.
//
// They go to one channel for all SKUs of a name and a database, so that an instance has one subscription, however many
// SKUs there are. In a cluster a classic PUBLISH reaches every node, from whichever node has the ledger. A sharded one
// would need a subscription for each SKU, to save what give-backs cost the cluster's bus: a batch of them is one
// message.
//
// Notifications may be lost, and nothing but time hangs on them: after SoldOutMemory a sold-out SKU is refreshed
// anyway.
