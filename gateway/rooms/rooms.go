// Package rooms opens the waiting rooms of a configuration and ties them to its sales and stock ledgers. It decides
// about no request.
package rooms

import (
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/octets"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/room"
	"sluice/room/roomgate"
	"sluice/room/roomstore"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/sale"
)

// Options are what rooms follow.
type Options struct {
	Link     *redisconn.Client // to Redis; stays the caller's
	Schedule *sale.Schedule
	Ledger   func() *ledger.Reserver   // nil, or a nil one = no ledger is open
	Now      func() int64              // monotonic ns
	Few      int64                     // so many units or less are few; below 0 = nothing is said
	Audit    func(room, commit string) // a draw has been committed to
	Pages    reject.RoomPages
	Log      *slog.Logger
}

// Rooms are the rooms of a gateway. It implements admin.Rooms.
type Rooms struct {
	all    roomgate.Rooms
	byName map[string]proxy.Room
}

// Open opens the rooms of c.
func Open(c *config.Config, o Options) (*Rooms, error) {
	r := &Rooms{byName: map[string]proxy.Room{}}
	for i := range c.Rooms {
		one, err := open(c, &c.Rooms[i], o)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.all = append(r.all, one)
		r.byName[c.Rooms[i].Name] = one
	}
	return r, nil
}

// pollFloor is the pause between two polls of a client, at least: no page shows a faster clock.
const pollFloor = time.Second

func open(c *config.Config, m *config.Room, o Options) (*roomgate.Room, error) {
	bypass, err := proxy.NewRoomBypass(m.Bypass)
	if err != nil {
		return nil, c.Errorf("room", "bypass: %v", err)
	}
	key, rounds := beaconOf(m)
	f := &follower{Options: o, name: m.Sale, hold: c.Stock.Reserve.ReservationTTL}
	made := roomgate.Options{
		Rules: room.Rules{Name: m.Name, Draw: m.Order == room.Draw, BeaconKey: key, Beacon: rounds, Opens: m.Opens,
			Pass: m.Pass, ClaimWithin: m.ClaimWithin, Overshoot: m.Overshoot, PerSecond: float64(m.PerSecond),
			PollFloor: pollFloor, PollCeiling: m.PollCeiling},
		Bypass: bypass, Audit: o.Audit, Pages: o.Pages, MaxParked: m.MaxParked,
		Few: o.Few, Store: roomstore.New(o.Link, stores.Name(c), m.Name), Log: o.Log,
		Now: func() int64 { return o.Schedule.Time(o.Now()) / 1e6 },
	}
	if m.Sale != "" {
		f.skus.Store(&map[string]bool{})
		f.sale() // the first request knows which SKUs there are
		made.Sale, made.Stock, made.Sells = f.sale, f.stock, f.sells
	}
	one, err := roomgate.New(made, c.Auth.RoomKeyList())
	if err != nil {
		return nil, c.Errorf("auth.room_key_file", "%v", err)
	}
	return one, nil
}

// Proxy are the rooms by name, as the proxy asks them.
func (r *Rooms) Proxy() map[string]proxy.Room { return r.byName }

// Collector are their metrics.
func (r *Rooms) Collector() roomgate.Rooms { return r.all }

// Use takes the keys of another configuration, and its pages. All else of a room changes with a restart.
func (r *Rooms) Use(c *config.Config, pages reject.RoomPages) error {
	for _, one := range r.all {
		one.UsePages(pages)
		if err := one.Use(c.Auth.RoomKeyList()); err != nil {
			return c.Errorf("auth.room_key_file", "%v", err)
		}
	}
	return nil
}

// Wake answers all requests that wait for news: the instance is going to stop.
func (r *Rooms) Wake() {
	for _, one := range r.all {
		one.Wake()
	}
}

// Close ends the rooms.
func (r *Rooms) Close() {
	for _, one := range r.all {
		one.Close()
	}
}

// follower reads what a room needs of its sale.
type follower struct {
	Options
	name string
	hold time.Duration
	list atomic.Pointer[[]string]
	skus atomic.Pointer[map[string]bool]
}

// sale is what the schedule says of the sale now. One that is not configured any more has ended.
func (f *follower) sale() room.Sale {
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
		return room.Sale{Starts: s.Starts.UnixMilli(), Ends: s.Ends.UnixMilli(), Paused: s.State == sale.Paused,
			Ended: s.State == sale.Ended}
	}
	return room.Sale{Ended: true}
}

// sells reports whether the sale has sku. It allocates nothing.
func (f *follower) sells(sku []byte) bool { return (*f.skus.Load())[string(sku)] }

// stock is what this instance knows of the units of all SKUs of the sale, from memory. Units of a SKU that is paused
// or frozen may be sold later: they count as held.
func (f *follower) stock() *roomstore.Stock {
	sum, list := &roomstore.Stock{Hold: f.hold}, f.list.Load()
	if f.Ledger == nil || list == nil {
		return sum
	}
	reserver := f.Ledger()
	if reserver == nil {
		return sum
	}
	now := f.Now()
	at := f.Schedule.Time(now) / 1e6
	known, print := true, octets.NewFingerprint()
	for _, sku := range *list {
		v, ok := reserver.Status(now, []byte(sku))
		known = known && ok
		print.AddString(sku)
		sum.Epoch, sum.Version = sum.Epoch+v.Epoch, sum.Version+v.Ver
		switch v.At(at) {
		case protocol.On, protocol.Waiting:
			sum.Free, sum.Held = sum.Free+max(v.Free, 0), sum.Held+v.Held
		case protocol.Ended, protocol.Over:
			sum.Held += v.Held
		default:
			sum.Held += max(v.Free, 0) + v.Held
		}
	}
	sum.Known, sum.SKUs = known, strconv.FormatUint(uint64(print), 36)
	return sum
}
