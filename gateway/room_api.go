package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"sluice/admin"
	"sluice/config"
	"sluice/room"
)

// maxRoomMessage is the longest message for those who wait, in bytes.
const maxRoomMessage = 500

// All implements admin.Rooms.
func (r *rooms) All() (all []admin.Room) {
	for _, one := range r.now.Load().all {
		s, word, parked, age := one.Status()
		rules := one.Rules()
		shown := admin.Room{Name: rules.Name, Phase: string(s.Phase), State: word, Order: room.FIFO, Issued: s.Issued,
			Waiting: s.Waiting(), Called: s.Called, Claimed: s.Claimed, Inside: s.Inside, Used: s.Used, Expired: s.Expired,
			Free: -1, Rate: s.Rate, Parked: parked, Age: age, Message: s.Message}
		shown.People, shown.Conversion, shown.Comes = s.People, s.ShareThatOrders(), s.ShareThatComes(&rules)
		shown.Held, shown.OffSale = one.Later(s)
		shown.Chance = -1
		if s.Known {
			shown.Free, shown.Chance = s.Free, s.Chance()
		}
		for _, p := range []struct {
			to    *int64
			share float64
		}{{&shown.WaitP50, 0.5}, {&shown.WaitP90, 0.9}} {
			if wait, ok := s.Waits.Quantile(p.share); ok {
				*p.to = wait.Milliseconds()
			}
		}
		if word == "" {
			shown.State = "open"
		}
		if s.Draw {
			shown.Order, shown.Commit, shown.Redrawn = room.Draw, s.Lottery.Commit, s.Lottery.Redrawn
			shown.BeaconRound, shown.BeaconAt = s.Lottery.BeaconRound, s.Lottery.BeaconAt
			shown.DrawnBy, shown.Threshold = s.Lottery.DrawnBy, s.Threshold
			shown.Seed, shown.Beacon, shown.Early = s.Lottery.Seed, s.Lottery.Beacon, s.InDraw()
		}
		all = append(all, shown)
	}
	return all
}

// Change implements admin.Rooms.
func (r *rooms) Change(ctx context.Context, name string, c admin.RoomChange) error {
	var names []string
	for _, one := range r.now.Load().all {
		if one.Rules().Name == name {
			return changeRoom(ctx, one, &c)
		}
		names = append(names, one.Rules().Name)
	}
	return fmt.Errorf("waiting room %.40q %w; %s", name, admin.ErrNotConfigured, config.Meant(name, names))
}

func changeRoom(ctx context.Context, one *room.Room, c *admin.RoomChange) error {
	switch {
	case c.State != nil:
		words := map[string]string{"open": "", "hold": room.OverrideHold, "drain": room.OverrideDrain,
			"off": room.OverrideOff}
		word, ok := words[*c.State]
		if !ok {
			return fmt.Errorf(`%w: a state is "open", "hold", "drain" or "off", not %.20q`, admin.ErrInvalid, *c.State)
		}
		return one.Set(ctx, room.FieldOverride, word)
	case c.Rate != nil:
		if !(*c.Rate >= 0 && *c.Rate <= 1_000_000) {
			return fmt.Errorf("%w: a rate is 0, for that of the configuration, to 1000000 people a second", admin.ErrInvalid)
		}
		text := ""
		if *c.Rate > 0 {
			text = strconv.FormatFloat(*c.Rate, 'g', -1, 64)
		}
		return one.Set(ctx, room.FieldRate, text)
	case c.Message != nil:
		if len(*c.Message) > maxRoomMessage || !utf8.ValidString(*c.Message) {
			return fmt.Errorf("%w: a message has at most %d bytes of UTF-8", admin.ErrInvalid, maxRoomMessage)
		}
		return one.Set(ctx, room.FieldMessage, *c.Message)
	}
	return drawRoom(ctx, one, *c.Beacon, c.Round)
}

// drawRoom makes the draw by the signature of the round that was published before the start, which is checked by the
// key that was published with it.
func drawRoom(ctx context.Context, one *room.Room, signature string, round int64) error {
	s, _, _, _ := one.Status()
	l := &s.Lottery
	switch {
	case !s.Draw:
		return fmt.Errorf("%w: room %q calls people in the order in which they came", admin.ErrConflict, one.Rules().Name)
	case l.BeaconRound == 0:
		return fmt.Errorf("%w: the draw of room %q waits for no beacon: the committed seed alone decides", admin.ErrConflict,
			one.Rules().Name)
	case round != l.BeaconRound:
		return fmt.Errorf("%w: the draw waits for round %d, which was published, not for %d", admin.ErrConflict,
			l.BeaconRound, round)
	}
	if err := l.CheckBeacon(signature); err != nil {
		return fmt.Errorf("%w: round %d: %w", admin.ErrInvalid, round, err)
	}
	err := one.Store().Draw(ctx, l, signature)
	if errors.Is(err, room.ErrDrawn) || errors.Is(err, room.ErrTooEarly) || errors.Is(err, room.ErrRound) {
		return fmt.Errorf("%w: %w", admin.ErrConflict, err)
	}
	return err
}
