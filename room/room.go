// Package room runs waiting rooms: signed tickets and passes, the draw, the public document, the place of a ticket in
// it, how many people may be called, the state that instances share in Redis (Store), and the answers of an instance
// (Room). Nothing is kept of a person who waits.
//
// A ticket or a pass is accepted only for the user and the room that it was made for, and checking one allocates
// nothing. Anyone with the published data computes the same places as an instance. What computes these does no I/O
// and reads no clock.
//
// In Redis, a number is given out once as long as Redis loses nothing. One which Redis has lost counts again as soon as
// an instance looks that has heard of it. A room is moved once for each state that was read, whichever instance is
// first. A pass that is claimed or used twice counts once.
//
// An instance answers polls, tickets and passes from memory. A request that waits for news hears of it within two ticks
// of 100 ms. Joins and claims cost Redis at most 100 calls a second each, however many come. With Redis away the last
// state stands and no more people are called.
package room

import (
	"time"
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
	Beacon      BeaconSchedule
	Opens       time.Duration // so long before the start people are taken in
	Pass        time.Duration // a pass is good for so long
	ClaimWithin time.Duration // who is called and has not come by then is passed over
	Overshoot   float64       // so many passes for each unit that can be bought
	PerSecond   float64       // calls a second at most; 0 = no bound
	PollFloor   time.Duration
	PollCeiling time.Duration
}
