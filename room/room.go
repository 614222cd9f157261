// Package room has the values and the arithmetic of waiting rooms: signed tickets and passes, the draw, the public
// document, the place of a ticket in it, and how many people may be called.
//
// It promises that a ticket or a pass is accepted only for the user and the room that it was made for, that checking
// one allocates nothing, and that anyone with the
// published data computes the same places as an instance.
//
// It does no I/O, reads no clock and keeps nothing: room/roomstore keeps the state that all instances share, and
// room/roomgate serves it.
package room

import (
	"time"

	"sluice/room/beacon"
)

// Phase says what a room does.
type Phase string

// The phases, in the order in which most rooms pass through them.
const (
	Closed     Phase = "closed"      // it takes people in later
	PreQueue   Phase = "pre_queue"   // it takes people in, and calls none before the start
	Drawing    Phase = "drawing"     // the sale has begun; the draw waits for its beacon
	Open       Phase = "open"        // people are called in their order
	LastChance Phase = "last_chance" // all units are held; some may come back
	Over       Phase = "over"        // no unit is left
	Hold       Phase = "hold"        // an operator, or a paused sale: no people are called
	Drain      Phase = "drain"       // an operator: no client may join, those who wait are called
	Off        Phase = "off"         // an operator: orders need no pass
)

// Orders in which people are called.
const (
	FIFO = "fifo"
	Draw = "draw"
)

// Rules are what one room is configured to do.
type Rules struct {
	Name        string // 1 to 64 letters, digits and . _ -
	Draw        bool   // what State.Draw becomes
	BeaconKey   string // in hexadecimal digits; "" = no beacon: the committed seed alone decides
	Beacon      beacon.Schedule
	Opens       time.Duration // so long before the start people are taken in
	Pass        time.Duration // a pass is good for so long, at most twice
	ClaimWithin time.Duration // who is called and has not come by then is passed over
	Overshoot   float64       // so many passes for each unit that can be bought
	PerSecond   float64       // calls a second at most; 0 = no bound
	PollFloor   time.Duration
	PollCeiling time.Duration
}
