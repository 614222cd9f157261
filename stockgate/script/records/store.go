// Package records keeps the orders whose units a shop's own script has taken until they are settled, and which units
// are to be given back. It is a protocol.Store, so that what settles and resolves the orders of a ledger does so with
// these too.
//
// It promises that an order is in it only if the script took its units; that an order is decided once; and that what
// was decided to be given back is handed out until the script has given it back, and to one instance at a time.
//
// It takes and gives back no unit: the shop's script does. It knows no total.
package records

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/redisconn"
)

//go:embed lua/*.lua
var lua embed.FS

// keepConfirmed is how long a confirmed order is kept: until then it can be refunded.
const keepConfirmed = 30 * 24 * time.Hour

// Store is the records in one Redis. It is safe for concurrent use. It is a whole protocol.Store: the
// ledger's settler, resolver and control API use it.
type Store struct {
	link *redisconn.Client
	keys []string
	text map[string]script

	mu     sync.Mutex
	track  func(sku string)
	others map[string][]leased // by SKU: overdue orders that a sweep of other SKUs has leased
}

type script struct{ text, sha string }

// New returns the records under a prefix. The link stays the caller's.
func New(link *redisconn.Client, prefix string) *Store {
	s := &Store{link: link, text: map[string]script{}, track: func(string) {}, others: map[string][]leased{}}
	for _, name := range []string{"r", "d", "x", "owed", "tries", "sums", "skus"} {
		s.keys = append(s.keys, prefix+"sluice:{script}:"+name)
	}
	for _, name := range []string{"write", "finish", "sweep", "claim", "probe"} {
		text := read("shared") + read(name)
		sum := sha1.Sum([]byte(text))
		s.text[name] = script{text, hex.EncodeToString(sum[:])}
	}
	return s
}

func read(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// Positions in keys.
const (
	recordsKey, payloadsKey, dueKey, owedKey, triesKey, sumsKey, skusKey = 0, 1, 2, 3, 4, 5, 6
)

// run runs a script, once.
func (s *Store) run(ctx context.Context, name string, args ...any) (reply []any, err error) {
	err = s.do(ctx, func(ctx context.Context, c *redis.Client) error {
		for _, how := range [][2]any{{"evalsha", s.text[name].sha}, {"eval", s.text[name].text}} {
			all := []any{how[0], how[1], len(s.keys)}
			for _, k := range s.keys {
				all = append(all, k)
			}
			cmd := redisconn.Once{Cmd: redis.NewCmd(ctx, append(all, args...)...)}
			_ = c.Process(ctx, cmd)
			if reply, err = cmd.Slice(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
				break
			}
		}
		return err
	})
	return reply, err
}

// do asks the server that has the keys.
func (s *Store) do(ctx context.Context, ask func(context.Context, *redis.Client) error) error {
	err := s.link.To(s.keys[recordsKey]).Do(ctx, ask, redisconn.Unanswered)
	if err != nil {
		return fmt.Errorf("records of the script's orders: %w", err)
	}
	return nil
}

// name is the name of an order in the keys. SKUs have no spaces.
func name(sku, serial string) string { return sku + " " + serial }

// Order is an order whose units were taken.
type Order struct {
	Serial, User string
	Quantity     int64
	Payload      string // what giving back needs
}

// Write keeps orders of one SKU until deadline (Unix ms), and returns for each the record of an earlier order of this
// serial, or of a release that came before any; without a status the order is kept now. After an error reply none of
// them is kept, after any other one it is not known which are.
func (s *Store) Write(ctx context.Context, sku string, deadline int64, orders []Order) ([]protocol.Record, error) {
	args := []any{deadline, sku, len(orders)}
	for _, o := range orders {
		args = append(args, o.Serial, o.Quantity, o.User, o.Payload)
	}
	reply, err := s.run(ctx, "write", args...)
	if err == nil && len(reply) != len(orders) {
		err = fmt.Errorf("records of the script's orders: %d answers to %d orders", len(reply), len(orders))
	}
	if err != nil {
		return nil, err
	}
	found := make([]protocol.Record, len(orders))
	for i, before := range reply {
		if before != "" {
			if found[i], err = protocol.DecodeRecord(orders[i].Serial, fmt.Sprint(before)); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Probe finds out whether Write would succeed now: it writes what Write does, and takes it away again.
func (s *Store) Probe(ctx context.Context) error {
	_, err := s.run(ctx, "probe")
	return err
}

// Finish implements protocol.Store. What was taken and is released or refunded is owed from then on.
func (s *Store) Finish(ctx context.Context, sku string, now, keep int64, op protocol.Op, items []protocol.Item,
	done []protocol.Done) (protocol.StockVersion, error) {
	if op == protocol.Adopt {
		return protocol.StockVersion{}, fmt.Errorf("adopt: %w: the script takes the units of an order", errUnsupported)
	}
	args := []any{now, keep, now + keepConfirmed.Milliseconds(), string(op), sku}
	for _, it := range items {
		args = append(args, it.Serial)
	}
	reply, err := s.run(ctx, "finish", args...)
	if err == nil && len(reply) != len(items) {
		err = fmt.Errorf("records of the script's orders: %d answers to %d orders", len(reply), len(items))
	}
	for i, answer := range reply {
		if n, ok := answer.(int64); ok && err == nil {
			done[i] = protocol.Done(n)
		}
	}
	return protocol.StockVersion{}, err
}

// FindAll implements protocol.Store.
func (s *Store) FindAll(ctx context.Context, orders []protocol.OrderName) []protocol.Found {
	found, names := make([]protocol.Found, len(orders)), make([]string, len(orders))
	for i, o := range orders {
		names[i] = name(o.SKU, o.Serial)
	}
	var texts []any
	err := s.do(ctx, func(ctx context.Context, c *redis.Client) (err error) {
		texts, err = c.HMGet(ctx, s.keys[recordsKey], names...).Result()
		return err
	})
	for i := range found {
		if found[i].Err = err; err == nil && texts[i] != nil {
			found[i].Record, found[i].Err = protocol.DecodeRecord(orders[i].Serial, fmt.Sprint(texts[i]))
			found[i].OK = found[i].Err == nil
		}
	}
	return found
}

// Find implements protocol.Store.
func (s *Store) Find(ctx context.Context, sku, serial string) (protocol.Record, bool, error) {
	f := s.FindAll(ctx, []protocol.OrderName{{SKU: sku, Serial: serial}})[0]
	return f.Record, f.OK, f.Err
}

// ReadStock implements protocol.Store: what is held and sold by orders that are kept. The total is no more than that.
func (s *Store) ReadStock(ctx context.Context, sku string) (st protocol.Stock, ok bool, err error) {
	err = s.do(ctx, func(ctx context.Context, c *redis.Client) error {
		known, err := c.SIsMember(ctx, s.keys[skusKey], sku).Result()
		if err != nil || !known {
			return err
		}
		ok = true
		all, err := c.HMGet(ctx, s.keys[sumsKey], "held "+sku, "sold "+sku).Result()
		if err == nil {
			st.Held, st.Sold = number(all[0]), number(all[1])
		}
		return err
	})
	st.Total, st.State = st.Held+st.Sold, protocol.On
	return st, ok && err == nil, err
}

func number(v any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64) // nil is 0
	return n
}

// SKUs implements protocol.Store.
func (s *Store) SKUs(ctx context.Context, limit int) (skus []string, err error) {
	err = s.do(ctx, func(ctx context.Context, c *redis.Client) (err error) {
		skus, err = c.SMembers(ctx, s.keys[skusKey]).Result()
		return err
	})
	slices.Sort(skus)
	return skus[:min(len(skus), limit)], err
}

// Records implements protocol.Store.
func (s *Store) Records(ctx context.Context, sku string, see func(protocol.Record) bool) error {
	for cursor, end := uint64(0), false; !end; {
		var page []string
		err := s.do(ctx, func(ctx context.Context, c *redis.Client) (err error) {
			page, cursor, err = c.HScan(ctx, s.keys[recordsKey], cursor, escape(sku)+" *", 1000).Result()
			return err
		})
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			_, serial, _ := strings.Cut(page[i], " ")
			r, err := protocol.DecodeRecord(serial, page[i+1])
			if err != nil {
				return err
			}
			if !see(r) {
				return nil
			}
		}
		end = cursor == 0
	}
	return nil
}

// escape makes sku a pattern that matches it alone.
func escape(sku string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(sku)
}

// errUnsupported is the cause when something is asked that a script decides.
var errUnsupported = errors.New("the shop's script keeps the stock, and this is no ledger")

// unchanged is what a stock is that cannot be changed here: it is not missing.
func unchanged() protocol.Stock {
	return protocol.Stock{StockVersion: protocol.StockVersion{State: protocol.On}}
}

// Reserve implements protocol.Store: the script takes units, and Write keeps the order.
func (s *Store) Reserve(context.Context, string, int64, int64, int64, []protocol.Item, []protocol.Code) (
	protocol.StockVersion, error) {
	return protocol.StockVersion{}, errUnsupported
}

// SetTotal implements protocol.Store.
func (s *Store) SetTotal(context.Context, string, int64, int64) (protocol.Stock, error) {
	return unchanged(), errUnsupported
}

// Create implements protocol.Store.
func (s *Store) Create(context.Context, string, protocol.Opening) (protocol.Stock, bool, error) {
	return unchanged(), false, errUnsupported
}

// SetState implements protocol.Store.
func (s *Store) SetState(context.Context, string, protocol.State) (protocol.Stock, error) {
	return unchanged(), errUnsupported
}

// Add implements protocol.Store.
func (s *Store) Add(context.Context, string, int64, string) (protocol.Stock, error) {
	return unchanged(), errUnsupported
}

// SetSchedule implements protocol.Store.
func (s *Store) SetSchedule(context.Context, string, int64, int64) (protocol.Stock, error) {
	return unchanged(), errUnsupported
}
