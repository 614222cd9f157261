package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a queue.
const (
	MaxRequest = 1 << 20 // bytes of an Item's Request
	MaxAnswer  = 64 << 10
	MaxTokens  = 1024

	// Never is when an order is asked about again that waits for a person, in Unix ms.
	Never = MaxNumber
)

// SlotCall is one call of Slots.
type SlotCall struct {
	Free   []string // tokens that are given back, at most MaxTokens
	Unused int      // of them, those by which nothing was sent: the rate does not count them
	Want   []string // tokens that are asked for; the first ones are granted
	Limit  int      // places in all
	Rate   float64  // orders a second; 0 = no limit
	For    int64    // ms after which a token that is not given back counts no more
	Pause  int64    // ms for which no caller is granted a place from now on; 0 = none

	// Longest is the longest For of any caller, in ms. A time that the store has of a token and that is later was written
	// by a clock that ran ahead: it is cut to this.
	Longest int64
}

func (c *SlotCall) Check() error {
	switch {
	case len(c.Free) > MaxTokens || len(c.Want) > MaxTokens:
		return fmt.Errorf("slots: more than %d tokens", MaxTokens)
	case c.Limit < 0 || c.Rate < 0 || c.For < 1 || c.Pause < 0 || c.Unused < 0:
		return errors.New("slots: a number is not positive")
	}
	return nil
}

// HandOutCall is one call of HandOut. Times are in ms.
type HandOutCall struct {
	Now     int64 // Unix ms
	Orders  int   // to be handed out, at most MaxItems; 0 = none
	Limit   int   // of orders of this SKU that are handed out at once
	Timeout int64 // of a first attempt; it doubles twice, and never ends after the reservation
	Slowest int64 // Timeout of the longest first attempt that any caller asks for; attempts that a ledger lost may have it
	Grace   int64 // by how much the upstream's clock may be late
	Ask     int   // orders to ask about, at most MaxItems
	AskFor  int64 // for so long no other instance is told to ask about them
}

func (c *HandOutCall) Check(sku string) error {
	switch {
	case c.Orders < 0 || c.Orders > MaxItems || c.Ask < 0 || c.Ask > MaxItems || c.Limit < 0:
		return fmt.Errorf("take: 0 to %d orders are possible", MaxItems)
	case c.Timeout < 1 || c.Slowest < c.Timeout || c.Grace < 0 || c.AskFor < 1:
		return errors.New("take: a time is not positive")
	}
	return errors.Join(CheckSKU(sku), checkNumber("time", c.Now))
}

// Longest is how long an attempt of any caller may take, from the longest timeout to the end of the grace.
func (c *HandOutCall) Longest() int64 { return c.Slowest*maxDoubled + c.Grace }

const maxDoubled = 4 // first timeouts are the longest

// HandedOut is what HandOut hands out.
type HandedOut struct {
	StockVersion
	Depth
	Orders  []Leased
	Ask     []Leased // the outcome of an attempt is unknown, and its deadline and the grace have passed
	Expired []Leased // they wait, and no attempt may begin any more
}

// Leased is one order that was handed out.
type Leased struct {
	Record         // Deadline is that of the reservation
	Attempt  int64 // how many count, with this one
	Lease    int64 // how often it was handed out; never falls
	Deadline int64 // Unix ms: of the attempt
	Until    int64 // Unix ms: no attempt begins after it
	Open     bool  // an earlier attempt may have made the order: only who knows may end it
	Request  string
}

// Move is what Decide does to an order.
type Move string

// The moves. Those of an attempt need its lease, and change nothing once another attempt has begun.
const (
	MoveConfirm Move = "confirm" // it exists, whichever attempt made it
	MoveRelease Move = "release" // of an attempt: there is none, and none can come
	MoveAgain   Move = "again"   // of an attempt: it made none, and the order waits again in its old place
	MoveUnsent  Move = "unsent"  // likewise, and the attempt does not count
	MoveNotNow  Move = "not_now" // likewise, and it is put off until From
	MoveNowhere Move = "nowhere" // as MoveAgain, and no earlier attempt made one either
	MoveRepeat  Move = "repeat"  // as MoveAgain, but the attempt may have made the order: it is Open from now on
	MoveLater   Move = "later"   // of an attempt: ask from Time on; Never = a person decides
	MoveCancel  Move = "cancel"  // release it if it waits, is not Open, and nothing is in doubt
	MoveRequeue Move = "requeue" // of one that waits for a person: it waits again, until Time
)

// DecideCall is one call of Decide.
type DecideCall struct {
	Now       int64 // Unix ms
	Keep      int64 // Unix ms until which a release is remembered
	AnswerFor int64 // ms for which answers are kept at least; twice as long at most
	Decisions []Decision
}

// Decision is what is to become of one order.
type Decision struct {
	Serial string
	Move   Move
	Lease  int64
	Time   int64  // Unix ms: see Move; where it waits again and the ledger has lost changes, when to ask
	Answer string // kept for AnswerFor with MoveConfirm, MoveRelease and MoveCancel; "" = none
	From   int64  // Unix ms: of MoveNotNow; the time of the order ends all the same
}

func (c *DecideCall) Check(sku string) error {
	if len(c.Decisions) < 1 || len(c.Decisions) > MaxItems {
		return fmt.Errorf("%d decisions: 1 to %d are possible", len(c.Decisions), MaxItems)
	}
	errs := []error{CheckSKU(sku), checkTimes(c.Now, c.Keep), checkNumber("time", c.AnswerFor)}
	for i := range c.Decisions {
		errs = append(errs, c.Decisions[i].check())
	}
	return errors.Join(errs...)
}

func (d *Decision) check() error {
	switch d.Move {
	case MoveConfirm, MoveRelease, MoveAgain, MoveUnsent, MoveNotNow, MoveNowhere, MoveRepeat, MoveLater, MoveCancel,
		MoveRequeue:
	default:
		return fmt.Errorf("%q is no move", d.Move)
	}
	if len(d.Answer) > MaxAnswer {
		return fmt.Errorf("an answer of %d bytes: at most %d are kept", len(d.Answer), MaxAnswer)
	}
	return errors.Join(CheckSerial(d.Serial), checkNumber("time", d.Time), checkNumber("time", d.From))
}

// What a move came to, beside what is said of an Op.
const (
	TooLate   Done = -9  // it was handed over, or another attempt has begun: nothing was changed
	NotQueued Done = -10 // it is held, and no order of a queue
)

// Position is where an order is.
type Position struct {
	Record        // its Status is StatusNone for an unknown serial
	Where  Where  // of one that is held
	Ahead  int64  // orders before it, where it waits
	Answer string // what Decide has kept of one that is decided; "" = nothing, or no longer
	Err    error  // why it is not certain that there is no such order; nil = it is, or there is one
}

// Where is on which step of its way a held order is.
type Where string

const (
	NotWaiting Where = ""           // it is no order of a queue, or its request was lost
	Queued     Where = "queued"     // it waits
	Delivering Where = "delivering" // it was handed out
	Asking     Where = "unknown"    // an attempt was made, and its outcome is not known
	ForAPerson Where = "stuck"      // likewise, and it is asked about no more
)

// Depth counts orders.
type Depth struct {
	Waiting   int64
	Leased    int64
	Asking    int64 // stuck ones too
	Stuck     int64 // by Depths alone
	Delivered int64 // that were handed out since the ledger was made
	Oldest    int64 // Unix ms: no attempt of the oldest that waits begins after it; 0 = none waits; by HandOut alone
}

// Active reports whether there is anything to do.
func (d Depth) Active() bool { return d.Waiting+d.Leased+d.Asking > 0 }

// NewRequest is an Item's Request: data that HandOut hands out until a time, in Unix ms.
func NewRequest(until int64, data string) string { return fmt.Sprintf("%d|%s", until, data) }

// splitRequest reads what NewRequest has written.
func splitRequest(request string) (until int64, data string, err error) {
	text, data, ok := strings.Cut(request, "|")
	if until, err = Digits(text); err != nil || !ok {
		return 0, "", errors.New("a request does not begin with a time")
	}
	return until, data, nil
}

func checkRequest(request string) error {
	if request == "" {
		return nil
	}
	if len(request) > MaxRequest {
		return fmt.Errorf("a request of %d bytes: at most %d can wait", len(request), MaxRequest)
	}
	_, _, err := splitRequest(request)
	return err
}
