package redisstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
)

// TestQueue_BothStoresAgree does the same at random to both stores, in calls that are about several orders and some of
// them twice, and wants the same answers. The store in memory is simple enough to be read.
func TestQueue_BothStoresAgree(t *testing.T) {
	testkit.Nightly(t, "it compares with the store in memory")
	stores := []protocol.Store{connect(t, redistest.Start(t), texts()), memstore.New()}
	for _, s := range stores {
		ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 40, 0))
	}
	random, now, serials, lease := rand.New(rand.NewPCG(1, 2)), int64(1), []string{}, map[string]int64{}
	some := func() string { return serials[max(len(serials)-1-random.IntN(12), 0)] }
	for step := range 1000 {
		now += random.Int64N(40)
		var said [2]string
		did := ""
		both := func(what string, f func(s protocol.Store, q protocol.Queue) string) {
			did = what
			for i, s := range stores {
				said[i] = f(s, s.(protocol.Queue))
			}
		}
		switch n := random.IntN(10); {
		case n < 3 || len(serials) == 0:
			serial := fmt.Sprint("s", step)
			serials = append(serials, serial)
			until := now + random.Int64N(2000)
			both(fmt.Sprint("reserve ", serial, " until ", until), func(s protocol.Store, _ protocol.Queue) string {
				codes := make([]protocol.Code, 1)
				_, err := s.Reserve(t.Context(), "1001", 0, now, now+3000, []protocol.Item{{Serial: serial, User: serial,
					Quantity: 1, Request: protocol.NewRequest(until, "request")}}, codes)
				return fmt.Sprint(codes, err)
			})
		case n < 6:
			c := takeAll
			c.Now, c.Orders, c.Ask = now, random.IntN(4), 100*random.IntN(2)
			both(fmt.Sprintf("take %+v", c), func(_ protocol.Store, q protocol.Queue) string {
				got, err := q.HandOut(t.Context(), "1001", c)
				for _, o := range append(got.Orders, got.Ask...) {
					lease[o.Serial] = o.Lease
				}
				for _, o := range got.Expired { // as a deliverer does
					decide(t, q, protocol.MoveCancel, o.Serial, o.Lease, 0)
				}
				return fmt.Sprintf("%+v %+v %+v %d %v", got.Orders, got.Ask, got.Expired, got.Delivered, err)
			})
		case n < 7:
			serial, op := some(), []protocol.Op{protocol.Confirm, protocol.Release}[random.IntN(2)]
			both(fmt.Sprint(op, " ", serial), func(s protocol.Store, _ protocol.Queue) string {
				return fmt.Sprint(ledgertest.Finish(t, s, op, serial))
			})
		default:
			all := decisionsAtRandom(random, now, some, lease)
			both(fmt.Sprintf("decide %+v", all), func(_ protocol.Store, q protocol.Queue) string {
				done, _, err := q.Decide(t.Context(), "1001", protocol.DecideCall{Now: now, Keep: now + 1_000_000,
					AnswerFor: 60_000, Decisions: all})
				return fmt.Sprint(done, err)
			})
		}
		if said[0] == said[1] {
			both(did, func(s protocol.Store, q protocol.Queue) string {
				places, err := q.Positions(t.Context(), "1001", serials[max(len(serials)-30, 0):])
				for i := range places {
					places[i].Ahead = 0 // Redis counts what was decided elsewhere until it meets it
				}
				stock := ledgertest.StockOf(t, s)
				return fmt.Sprintf("%+v %v held %d sold %d free %d", places, err, stock.Held, stock.Sold, stock.Free)
			})
		}
		if said[0] != said[1] {
			t.Fatalf("step %d at %d: %s\nredis:  %s\nmemory: %s", step, now, did, said[0], said[1])
		}
	}
}

// decisionsAtRandom are about some orders, and about some of them twice.
func decisionsAtRandom(random *rand.Rand, now int64, some func() string, lease map[string]int64) (
	all []protocol.Decision,
) {
	moves := []protocol.Move{protocol.MoveConfirm, protocol.MoveRelease, protocol.MoveAgain, protocol.MoveUnsent,
		protocol.MoveNotNow, protocol.MoveNowhere, protocol.MoveRepeat, protocol.MoveLater, protocol.MoveCancel,
		protocol.MoveRequeue}
	for range 1 + random.IntN(4) {
		serial := some()
		d := protocol.Decision{Serial: serial, Move: moves[random.IntN(len(moves))], Lease: lease[serial],
			Time: now + random.Int64N(300), From: now + random.Int64N(1500), Answer: fmt.Sprint("answer at ", now)}
		if random.IntN(4) == 0 {
			d.Time = protocol.Never
		}
		if all = append(all, d); random.IntN(2) == 0 {
			d.Move = moves[random.IntN(len(moves))]
			all = append(all, d)
		}
	}
	return all
}
