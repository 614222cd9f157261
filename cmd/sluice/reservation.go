package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice/admin"
	"sluice/stockgate/ledger"
)

type reservationCommand struct {
	Where where `embed:""`

	Get     reservationGet     `cmd:"" aliases:"show" help:"Show what became of an order."`
	Confirm reservationConfirm `cmd:"" help:"Say that the shop has the order: its units are sold."`
	Release reservationRelease `cmd:"" help:"Say that the shop has no such order and cannot get it any more: its units are for sale again."`
	Refund  reservationRefund  `cmd:"" help:"Say that the shop has cancelled the order: its units are for sale again."`
	Adopt   reservationAdopt   `cmd:"" help:"Take an order into the ledger that the shop has and the ledger does not know: its units are sold."`
	List    reservationList    `cmd:"" help:"Show orders: those first that must be decided first."`
}

// order names one reservation.
type order struct {
	Serial string `arg:"" name:"serial" help:"The Idempotency-Key of the order, which the shop was sent."`
	SKU    string `help:"Of this SKU. Needed where two SKUs know the serial." placeholder:"SKU"`
}

// Validate is called when the line is read; its error is one of usage.
func (o *order) Validate() error { return named(o.Serial) }

// named refuses what no order is known by.
func named(serial string) error {
	if ledger.ValidSerial([]byte(serial)) {
		return nil
	}
	return fmt.Errorf("serial %.140q: it has 1 to 128 visible ASCII characters, and is neither . nor .. itself", serial)
}

type reservationGet struct {
	order `embed:""`
}

type reservationConfirm struct {
	order `embed:""`
}

type reservationRelease struct {
	order `embed:""`
}

type reservationRefund struct {
	order `embed:""`
}

type reservationAdopt struct {
	Serial   string `arg:"" name:"serial" help:"The Idempotency-Key of the order, which the shop was sent."`
	SKU      string `help:"What was bought." required:"" placeholder:"SKU"`
	User     string `help:"Who bought it, as the gate identifies users. Default: nobody is identified." placeholder:"USER"`
	Quantity int64  `help:"How many units." default:"1" placeholder:"N"`
}

type reservationList struct {
	Unknown bool   `help:"Only those that nobody decided in time: ask the shop, then confirm or release them."`
	State   string `help:"Only those of one state." enum:",held,unknown,confirmed,released,refunded" default:"" placeholder:"held|unknown|confirmed|released|refunded"`
	SKU     string `help:"Only those of one SKU." placeholder:"SKU"`
	Limit   int    `default:"1000" help:"At most so many, up to 10000."`
}

// Validate is called when the line is read; its error is one of usage.
func (l *reservationList) Validate() error {
	if l.Unknown && l.State != "" {
		return errors.New("--unknown and --state: name one of them")
	}
	return listable(l.Limit)
}

// Validate is called when the line is read; its error is one of usage.
func (a *reservationAdopt) Validate() error { return named(a.Serial) }

func (g *reservationGet) Run(c *reservationCommand) error {
	var found admin.Reservation
	if err := c.call("GET", g.path(""), nil, &found); err != nil {
		return err
	}
	fmt.Println(row(found))
	return nil
}

func (o *reservationConfirm) Run(c *reservationCommand) error {
	return c.settle(o.path("/confirm"), nil)
}
func (o *reservationRelease) Run(c *reservationCommand) error {
	return c.settle(o.path("/release"), nil)
}
func (o *reservationRefund) Run(c *reservationCommand) error { return c.settle(o.path("/refund"), nil) }

func (o *reservationAdopt) Run(c *reservationCommand) error {
	if o.Quantity < 1 {
		return errors.New("--quantity: it must be 1 or more")
	}
	if err := sellable(o.SKU); err != nil {
		return err
	}
	order := map[string]any{"sku": o.SKU, "user": o.User, "quantity": o.Quantity}
	return c.settle("/"+segment(o.Serial)+"/adopt", order)
}

func (l *reservationList) Run(c *reservationCommand) error {
	query := url.Values{"limit": {strconv.Itoa(l.Limit)}}
	if l.Unknown {
		l.State = "unknown"
	}
	for name, value := range map[string]string{"state": l.State, "sku": l.SKU} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var all struct {
		Reservations []admin.Reservation
		More         bool
	}
	if err := c.call("GET", "?"+query.Encode(), nil, &all); err != nil {
		return err
	}
	for _, one := range all.Reservations {
		fmt.Println(row(one))
	}
	switch {
	case all.More:
		fmt.Fprintln(os.Stderr, "there are more: name a --sku, or raise --limit")
	case len(all.Reservations) == 0 && l.State == "unknown":
		fmt.Fprintln(os.Stderr, "no order is overdue: nothing is left to decide by hand")
	case len(all.Reservations) == 0:
		fmt.Fprintln(os.Stderr, "no such reservation")
	}
	return nil
}

// path is where the API knows an order.
func (o *order) path(op string) string {
	path := "/" + segment(o.Serial) + op
	if o.SKU != "" {
		path += "?sku=" + url.QueryEscape(o.SKU)
	}
	return path
}

// settle does one op, and shows what came of it.
func (c *reservationCommand) settle(path string, in any) error {
	var done struct {
		SKU, Serial string
		admin.Outcome
	}
	if err := c.call("POST", path, in, &done); err != nil {
		return err
	}
	note := ""
	if !done.Changed {
		note = "  (it was before)"
	}
	fmt.Printf("%s\t%s\t%s%s\n", done.Serial, done.SKU, done.State, note)
	if done.OverTotal {
		fmt.Fprintf(os.Stderr, "sluice: more of %s is sold now than there is: cancel orders at the shop and refund them, or raise the total\n", done.SKU)
	}
	return nil
}

func (c *reservationCommand) call(method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), operateWithin)
	defer cancel()
	to, done, err := c.Where.open()
	if err != nil {
		return err
	}
	defer done()
	return to.call(ctx, method, "/reservations"+path, in, out)
}

// row shows one order: serial, SKU, state, units, user, and until when it must be decided.
func row(r admin.Reservation) string {
	state := r.State
	if r.Overdue {
		state = "unknown"
	}
	cells := []string{spelt(r.Serial), spelt(r.SKU), state, strconv.FormatInt(r.Quantity, 10), spelt(r.User)}
	if !r.Deadline.IsZero() {
		cells = append(cells, r.Deadline.Local().Format(time.RFC3339))
	}
	return strings.Join(cells, "\t")
}

// spelt is a name that somebody else chose, and that cannot disturb a terminal; "-" is none.
func spelt(user string) string {
	switch {
	case user == "":
		return "-"
	case strings.ContainsFunc(user, func(c rune) bool { return !unicode.IsPrint(c) }):
		return strconv.Quote(user)
	}
	return user
}
