package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Sale is one schedule in the API.
type Sale struct {
	Name   string    `json:"name"`
	SKUs   []string  `json:"skus"`
	Starts time.Time `json:"starts"`
	Ends   time.Time `json:"ends"`
	State  string    `json:"state"` // "waiting" "on" "paused" "ended"
}

// Sales are the schedules, and what operators say of them. Its errors may be ErrNotConfigured.
type Sales interface {
	// All lists the sales as they stand, in the order of the configuration.
	All() []Sale

	// Set says for all instances where a sale stands from now on: "on" "paused" "ended".
	Set(ctx context.Context, name, state string) error
}

// ErrNotConfigured is what Sales and Rooms say of a name that is none of theirs.
var ErrNotConfigured = errors.New("is not configured")

func (a *API) listSales(w http.ResponseWriter, _ *http.Request) (any, error) {
	var all []Sale
	if a.Sales != nil {
		all = a.Sales.All()
	}
	return map[string]any{"sales": orEmpty(all)}, nil
}

// changeSale pauses a sale, resumes it, or ends it for good: {"state": "paused"}.
func (a *API) changeSale(w http.ResponseWriter, r *http.Request) (any, error) {
	var want struct {
		State string `json:"state"`
	}
	err := decode(w, r, &want)
	name := r.PathValue("name")
	switch {
	case a.Sales == nil:
		return nil, statusError{http.StatusNotFound, "no sales are known"}
	case err != nil || !slices.Contains([]string{"on", "paused", "ended"}, want.State):
		return nil, fmt.Errorf(`%w: the body must be {"state": "on", "paused" or "ended"}`, ErrInvalid)
	}
	before, err := a.saleNamed(name)
	if err == nil {
		err = a.Sales.Set(r.Context(), name, want.State)
	}
	if err != nil {
		return nil, err
	}
	now, _ := a.saleNamed(name)
	a.record(r, AuditEntry{What: "sale.change", Object: name, Before: before.State, After: want.State},
		"admin: sale changed", "sale", name, "state", want.State)
	return now, nil
}

// Room is one waiting room in the API.
type Room struct {
	Name    string  `json:"name"`
	Phase   string  `json:"phase"`
	State   string  `json:"state"` // what an operator has said: "open", which is nothing, "hold" "drain" "off"
	Order   string  `json:"order"` // "fifo" "draw"
	Issued  int64   `json:"issued"`
	People  int64   `json:"people"` // who joined, about: each counts once
	Waiting int64   `json:"waiting"`
	Called  int64   `json:"called"`
	Claimed int64   `json:"claimed"`
	Inside  int64   `json:"inside"`
	Used    int64   `json:"used"`
	Expired int64   `json:"expired"`
	Free    int64   `json:"free"`     // units; -1 = not known
	Held    int64   `json:"held"`     // by orders that are not decided
	OffSale int64   `json:"off_sale"` // of SKUs that are paused or closed: they may be sold later
	Rate    float64 `json:"rate"`     // people a second, by an operator; 0 = as configured
	Parked  int     `json:"parked"`   // requests of this instance that wait for news
	Age     int64   `json:"age_ms"`   // since this instance has read the room

	Conversion float64 `json:"conversion"`            // share of decided passes with an order; 1 at first
	Comes      float64 `json:"comes"`                 // share of those called who claimed; 1 at first
	Chance     float64 `json:"chance"`                // unsold units for each one who waits; -1 = not known
	WaitP50    int64   `json:"wait_p50_ms,omitempty"` // of those who claimed, until they were called
	WaitP90    int64   `json:"wait_p90_ms,omitempty"`

	Message string `json:"message,omitempty"`

	Commit      string `json:"commit,omitempty"`       // of the draw's seed
	BeaconRound int64  `json:"beacon_round,omitempty"` // that the draw waits for
	BeaconAt    int64  `json:"beacon_at_ms,omitempty"` // when this round is published; Unix ms
	Redrawn     int64  `json:"redrawn,omitempty"`      // draws that had begun when their start was moved
	DrawnBy     string `json:"drawn_by,omitempty"`     // "beacon" "shop"
	Seed        string `json:"seed,omitempty"`         // from the draw on
	Beacon      string `json:"beacon,omitempty"`       // likewise
	Threshold   int64  `json:"threshold,omitempty"`    // scores below it are called
	Early       int64  `json:"early,omitempty"`        // people who take part in the draw, about
}

// RoomChange is what an operator wants of a room: one of its fields.
type RoomChange struct {
	State   *string  `json:"state,omitempty"`
	Rate    *float64 `json:"rate,omitempty"`
	Message *string  `json:"message,omitempty"`
	Beacon  *string  `json:"beacon,omitempty"` // the signature of the round, in hexadecimal digits
	Round   int64    `json:"round,omitempty"`  // of the beacon
}

// Rooms are the waiting rooms. Its errors may be ErrNotConfigured, ErrInvalid and ErrConflict.
type Rooms interface {
	// All lists the rooms as this instance sees them, in the order of the configuration.
	All() []Room

	// Change makes a change for all instances, which see it within a tick.
	Change(ctx context.Context, name string, c RoomChange) error
}

func (a *API) listRooms(w http.ResponseWriter, _ *http.Request) (any, error) {
	var all []Room
	if a.Rooms != nil {
		all = a.Rooms.All()
	}
	return map[string]any{"rooms": orEmpty(all)}, nil
}

const roomForm = `the body must be {"state": "open", "hold", "drain" or "off"}, {"rate": N}, {"message": "…"} or ` +
	`{"beacon": "…", "round": N}`

// changeRoom has a room call no people, let none join, or be out of force; changes its rate or its message; or
// makes its draw.
func (a *API) changeRoom(w http.ResponseWriter, r *http.Request) (any, error) {
	var want RoomChange
	err := decode(w, r, &want)
	name, asked := r.PathValue("name"), 0
	for _, is := range []bool{want.State != nil, want.Rate != nil, want.Message != nil, want.Beacon != nil} {
		if is {
			asked++
		}
	}
	switch {
	case a.Rooms == nil:
		return nil, statusError{http.StatusNotFound, "there is no waiting room"}
	case err != nil || asked != 1:
		return nil, fmt.Errorf("%w: %s", ErrInvalid, roomForm)
	}
	if err := a.Rooms.Change(r.Context(), name, want); err != nil {
		return nil, err
	}
	a.record(r, AuditEntry{What: "room.change", Object: name, After: want}, "admin: waiting room changed", "room", name)
	for _, one := range a.Rooms.All() {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, nil
}
