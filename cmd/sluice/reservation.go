package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/gateway/stores"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
	"sluice/stockgate/ledger"
)

func newReservation() *cobra.Command {
	cmd, at := parentOf("reservation", "Show what became of orders, and decide those that are overdue.", aboutRedis)
	cmd.AddCommand(newReservationGet(at),
		newDecision(at, "confirm", "Say that the shop has the order: its units are sold."),
		newDecision(at, "release",
			"Say that the shop has no such order and cannot get it any more: its units are for sale again."),
		newDecision(at, "refund", "Say that the shop has cancelled the order: its units are for sale again."),
		newDecision(at, "requeue",
			"Say that the shop has no such order and cannot get it any more: a stuck order of the queue is delivered again."),
		newReservationList(at))
	return cmd
}

// checkSerial reports what no order is known by.
func checkSerial(cmd *cobra.Command, serial string) error {
	if ledger.ValidSerial([]byte(serial)) {
		return nil
	}
	return cli.Misuse(cmd, fmt.Errorf(
		"serial %.140q: it has 1 to 128 visible ASCII characters, and is neither . nor .. itself", serial))
}

// orderPath is where the API knows an order. sku is needed where two SKUs know the serial.
func orderPath(serial, sku, op string) string {
	path := "/reservations/" + adminclient.Segment(serial) + op
	if sku != "" {
		path += "?sku=" + url.QueryEscape(sku)
	}
	return path
}

const ofSKU = "`SKU` of the order; needed where two SKUs know the serial"

func newReservationGet(at *target) *cobra.Command {
	var sku string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get <serial>", Short: "Show what became of an order.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSerial(cmd, args[0]); err != nil {
				return err
			}
			var found admin.Reservation
			if err := at.call(cmd, "GET", orderPath(args[0], sku, ""), nil, &found); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, found)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), stores.DescribeReservation(found))
			return err
		},
	}
	skuFlag(cmd, &sku, ofSKU)
	return jsonFlag(cmd, &asJSON)
}

// newDecision is a command that decides a reservation.
func newDecision(at *target, op, short string) *cobra.Command {
	var sku string
	cmd := &cobra.Command{
		Use: op + " <serial>", Short: short, Args: cli.Exactly,
		Long: short + "\nThe serial is the Idempotency-Key of the order, which the shop was sent.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSerial(cmd, args[0]); err != nil {
				return err
			}
			return decideOrder(cmd, at, orderPath(args[0], sku, "/"+op), nil)
		},
	}
	skuFlag(cmd, &sku, ofSKU)
	return cmd
}

// decideOrder decides an order, and prints what came of it.
func decideOrder(cmd *cobra.Command, at *target, path string, in any) error {
	var done struct {
		SKU, Serial string
		admin.Outcome
	}
	if err := at.call(cmd, "POST", path, in, &done); err != nil {
		return err
	}
	note := ""
	if !done.Changed {
		note = "  (it was before)"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\t%s%s\n", done.Serial, done.SKU, done.State, note)
	return nil
}

func newReservationList(at *target) *cobra.Command {
	var unknown, stuck, asJSON bool
	var state, sku string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "Show orders: first those that must be decided first.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unknown && state != "" || stuck && state != "" || unknown && stuck {
				return cli.Misuse(cmd, errors.New("--unknown, --stuck and --state: name one of them"))
			}
			if err := checkLimit(cmd, limit); err != nil {
				return err
			}
			wanted := state
			switch {
			case unknown:
				wanted = "unknown"
			case stuck:
				wanted = "stuck"
			}
			return listReservations(cmd, at, wanted, sku, limit, asJSON)
		},
	}
	cmd.Flags().BoolVar(&unknown, "unknown", false,
		"only those past their deadline, and with --admin those whose outcome the instance asks for: ask the shop, then "+
			"confirm or release them")
	cmd.Flags().BoolVar(&stuck, "stuck", false,
		"only orders of the queue that wait for a person: ask the shop, then confirm, release or requeue them")
	cli.ChoiceFlag(cmd, cmd.Flags(), &state, "state", "only those of one state", "held", "unknown", "stuck", "sold",
		"released", "refunded")
	skuFlag(cmd, &sku, "only those of one `SKU`")
	cmd.Flags().IntVar(&limit, "limit", 1000, "show at most `N`, up to 10000")
	return jsonFlag(cmd, &asJSON)
}

func listReservations(cmd *cobra.Command, at *target, state, sku string, limit int, asJSON bool) error {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"state": state, "sku": sku} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var all struct {
		Reservations []admin.Reservation `json:"reservations"`
		More         bool                `json:"more"`
		Held         int                 `json:"held"`
	}
	if err := at.call(cmd, "GET", "/reservations?"+query.Encode(), nil, &all); err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd, all)
	}
	if len(all.Reservations) > 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "SERIAL\tSKU\tSTATE\tUNITS\tUSER\tDEADLINE")
	}
	for _, one := range all.Reservations {
		fmt.Fprintln(cmd.OutOrStdout(), stores.DescribeReservation(one))
	}
	switch {
	case all.More:
		if sku == "" {
			fmt.Fprintln(os.Stderr, "there are more: name a --sku, or raise --limit")
		} else {
			fmt.Fprintln(os.Stderr, "there are more: raise --limit")
		}
	case state == "unknown":
		fmt.Fprintln(os.Stderr, otherHeld(len(all.Reservations), all.Held, at.asked))
	case len(all.Reservations) == 0 && state == "stuck":
		fmt.Fprintln(os.Stderr, "no order of the queue is stuck")
	case len(all.Reservations) == 0:
		fmt.Fprintln(os.Stderr, "no reservation")
	}
	return nil
}

// otherHeld says what a list of so many unknown orders leaves out. Only an instance knows of which orders the response
// was lost, and only until it ends: unasked is the address of one that could be asked, "" = none.
func otherHeld(listed, held int, unasked string) string {
	switch {
	case held == 0 && listed == 0:
		return "no order is held: nothing is left to decide by hand"
	case held == 0:
		return "no other order is held"
	}
	other := "other "
	if listed == 0 {
		other = ""
	}
	text := fmt.Sprintf("%d %sheld orders have no known outcome yet and are not past their deadline: "+
		"sluice reservation list --state held", held, other)
	if unasked != "" {
		text += "\norders whose response was lost are known to the instance that sent them: add --admin " + unasked +
			", or the address of another instance"
	}
	return text
}
