package gateway

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/octets"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/room"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/sale"
)

// roomSources are what rooms follow.
type roomSources struct {
	Link     func() (*redisconn.Client, error) // to Redis; stays the caller's
	Schedule *sale.Schedule
	Ledger   func() *ledger.Reserver   // nil = no ledger is open
	Now      func() int64              // monotonic ns
	Audit    func(room, commit string) // a draw has been committed to
	Log      *slog.Logger
}

// rooms are the rooms of a gateway. It implements admin.Rooms and prometheus.Collector.
type rooms struct {
	o        roomSources
	now      atomic.Pointer[roomsInForce]
	retiring sync.WaitGroup
}

// roomsInForce are the rooms of one configuration. They do not change.
type roomsInForce struct {
	all   room.Rooms
	rules []roomRules
}

// roomRules are what a room is made by. A room whose rules change is made anew; where people are is kept in Redis.
type roomRules struct {
	config.Room
	hold time.Duration
	few  int64 // so many units or less are few; below 0 = nothing is said
	keys [][]byte
	look config.Responses // of its pages
}

// newRooms has no room yet.
func newRooms(o roomSources) *rooms {
	r := &rooms{o: o}
	r.now.Store(&roomsInForce{})
	return r
}

// Prepare makes the rooms of c, by their names, but for those that run already. few units or less are few. use runs
// them, after the schedule has the sales of c, and ends those that c has not.
func (r *rooms) Prepare(c *config.Config, few int64, pages reject.RoomPages) (
	byName map[string]proxy.Room, use func(), err error,
) {
	before, next, byName := r.now.Load(), &roomsInForce{}, map[string]proxy.Room{}
	for _, m := range c.Rooms {
		made := roomRules{m, c.Stock.Reserve.ReservationTTL, few, c.Auth.RoomKeyList(), c.Responses}
		var one *room.Room
		at := slices.IndexFunc(before.rules, func(b roomRules) bool { return b.Name == m.Name })
		if at >= 0 {
			one = before.all[at]
		}
		if one == nil || !reflect.DeepEqual(before.rules[at], made) {
			if one, err = r.open(c, &made, pages, one); err != nil {
				return nil, nil, c.Errorf("room", "%v", err)
			}
		}
		next.all, next.rules = append(next.all, one), append(next.rules, made)
		byName[m.Name] = one
	}
	return byName, func() {
		for _, one := range next.all {
			if !slices.Contains(before.all, one) {
				one.Start()
			}
		}
		r.now.Store(next)
		for _, one := range before.all {
			if !slices.Contains(next.all, one) {
				r.retiring.Go(one.Retire)
			}
		}
	}, nil
}

// pollFloor is the pause between two polls of a client, at least: no page shows a faster clock.
const pollFloor = time.Second

func (r *rooms) open(c *config.Config, m *roomRules, pages reject.RoomPages, before *room.Room) (
	*room.Room, error,
) {
	bypass, err := proxy.NewRoomBypass(m.Bypass)
	if err != nil {
		return nil, fmt.Errorf("bypass: %w", err)
	}
	link, err := r.o.Link()
	if err != nil {
		return nil, err
	}
	key, rounds := beaconOf(&m.Room)
	f := &saleFollower{roomSources: r.o, name: m.Sale, hold: m.hold, last: room.Sale{Ended: true}}
	made := room.Options{
		Rules: room.Rules{Name: m.Name, Draw: m.Order == room.Draw, BeaconKey: key, Beacon: rounds, Opens: m.Opens,
			Pass: m.Pass, ClaimWithin: m.ClaimWithin, Overshoot: m.Overshoot, PerSecond: float64(m.PerSecond),
			PollFloor: pollFloor, PollCeiling: m.PollCeiling},
		Bypass: bypass, Audit: r.o.Audit, Pages: pages, MaxParked: m.MaxParked, Before: before,
		Few: m.few, Store: room.NewStore(link, stores.Name(c), m.Name), Log: r.o.Log,
		Now: func() int64 { return r.o.Schedule.Time(r.o.Now()) / 1e6 },
	}
	if m.Sale != "" {
		f.skus.Store(&map[string]bool{}) // its first tick knows which SKUs there are
		made.Sale, made.Stock, made.Sells = f.sale, f.stock, f.sells
	}
	return room.New(made, m.keys)
}

// StopWaiting answers all requests that wait for news: the instance is going to stop.
func (r *rooms) StopWaiting() {
	for _, one := range r.now.Load().all {
		one.StopWaiting()
	}
}

// OtherHours tells of a room that has other hours than its sale here; "" = there is none.
func (r *rooms) OtherHours() (text string) {
	for _, one := range r.now.Load().all {
		text = cmp.Or(text, one.OtherHours())
	}
	return text
}

// Close ends the rooms.
func (r *rooms) Close() {
	for _, one := range r.now.Load().all {
		one.Close()
	}
	r.retiring.Wait()
}

// Describe implements prometheus.Collector.
func (r *rooms) Describe(to chan<- *prometheus.Desc) { r.now.Load().all.Describe(to) }

// Collect implements prometheus.Collector.
func (r *rooms) Collect(to chan<- prometheus.Metric) { r.now.Load().all.Collect(to) }

// saleFollower reads what a room needs of its sale.
type saleFollower struct {
	roomSources
	name string
	hold time.Duration
	last room.Sale // of the room's goroutine alone
	list atomic.Pointer[[]string]
	skus atomic.Pointer[map[string]bool]
}

// sale is what the schedule says of the sale now. One that is not configured any more is as it was: a reload has put
// another room in the place of this one, which is about to end, and which must neither tell hours nor end for those who
// wait.
func (f *saleFollower) sale() room.Sale {
	for _, s := range f.Schedule.All() {
		if s.Name != f.name {
			continue
		}
		if before := f.list.Load(); before == nil || !slices.Equal(*before, s.SKUs) {
			skus, list := map[string]bool{}, s.SKUs
			for _, sku := range list {
				skus[sku] = true
			}
			f.skus.Store(&skus)
			f.list.Store(&list)
		}
		f.last = room.Sale{Starts: s.Starts.UnixMilli(), Ends: s.Ends.UnixMilli(), Paused: s.State == sale.Paused,
			Ended: s.State == sale.Ended}
	}
	return f.last
}

// sells reports whether the sale has sku. It allocates nothing.
func (f *saleFollower) sells(sku []byte) bool { return (*f.skus.Load())[string(sku)] }

// stock is what this instance knows of the units of all SKUs of the sale, from memory. Units of a SKU that is paused
// or closed may be sold later: they count as held, and are told apart as OffSale. What a ledger that is gone has left is not known: while nothing else
// is left, nothing is known, and the room is not over.
func (f *saleFollower) stock() *room.KnownStock {
	sum, list := &room.KnownStock{Hold: f.hold}, f.list.Load()
	if list == nil {
		return sum
	}
	reserver := f.Ledger()
	if reserver == nil {
		return sum
	}
	now := f.Now()
	at := f.Schedule.Time(now) / 1e6
	known, lost, print := true, false, octets.NewFingerprint()
	for _, sku := range *list {
		v, ok := reserver.Status(now, []byte(sku))
		known = known && ok
		print.AddString(sku)
		sum.Epoch, sum.Version = sum.Epoch+v.Epoch, sum.Version+v.Ver
		switch v.At(at) {
		case ledger.On, ledger.Waiting:
			sum.Free, sum.Held = sum.Free+max(v.Free, 0), sum.Held+v.Held
		case ledger.Ended, ledger.Over:
			sum.Held += v.Held
		case ledger.Lost:
			lost = true
		default:
			sum.Held, sum.OffSale = sum.Held+max(v.Free, 0)+v.Held, sum.OffSale+max(v.Free, 0)
		}
	}
	if lost && sum.Free+sum.Held == 0 {
		known = false
	}
	sum.Known, sum.SKUs = known, strconv.FormatUint(uint64(print), 36)
	return sum
}
