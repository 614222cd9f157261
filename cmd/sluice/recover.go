package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
	"sluice/internal/periodic"
)

const (
	ordersAtOnce  = 500              // of one request
	recoverWithin = 10 * time.Minute // all of it

	// An instance sweeps its ledgers every second, and up to 20 s apart where there are thousands of them. Until then
	// it does not know that a ledger was frozen or made again.
	toldAfter    = 5 * time.Second
	maxToldAfter = 25 * time.Second
	toldWithin   = 90 * time.Second // longer than all of them need to tell
)

// Where the orders of a SKU are, other than in a file.
const (
	fromSettlement = "settle"
	fromNowhere    = "none"
)

// recovery is what sluice stock recover was asked for. The ledger decides which orders it takes.
type recovery struct {
	sku          string
	from         string // a file, "-", fromSettlement or fromNowhere
	total, limit int64  // of a ledger that is gone; -1 = it is there, and as configured
	apply        bool
	state        string // of a frozen SKU in the end

	to       adminclient.Client
	out, err io.Writer // results, and remarks that are none
}

func (s *stockTarget) newRecover() *cobra.Command {
	want := recovery{state: "on"}
	cmd := &cobra.Command{
		Use:   "recover <sku>",
		Short: "Put a ledger back that has lost orders, and open it. Shows both books; --apply does it.",
		Long: "Put a ledger back that has lost orders: it takes those of --from, and a frozen SKU opens then, or\n" +
			"is what --state says. --from is\n" +
			"  FILE    all orders that the shop has now, without cancelled ones: CSV (serial,user,quantity, and sku\n" +
			"          with a header), or a JSON object in each line; - = standard input. What the ledger has as given\n" +
			"          back is sold again\n" +
			"  settle  the settlement's database, and settle.orders_query: what the ledger does not know. The SKU opens\n" +
			"          only if every instance that sold it has told what it knows\n" +
			"  none    nothing: you say that the shop has no order that the ledger lacks\n" +
			"With --total, the ledger is gone from Redis, and is made again with what running instances tell, too.\n" +
			"Without --apply, it shows what the ledger has and what would change. It may be interrupted and repeated.",
		Args: cli.Exactly, ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			want.sku = args[0]
			return s.recover(cmd, &want)
		},
	}
	cmd.Flags().StringVar(&want.from, "from", "", "where the orders of the SKU are: `FILE|settle|none`")
	cmd.Flags().Int64Var(&want.total, "total", -1,
		"the ledger is gone: `units` for sale in all, with those that are sold already")
	cmd.Flags().Int64Var(&want.limit, "limit", -1,
		"with --total: `units` that one person may have; 0 = no limit; -1 = as configured")
	cli.ChoiceFlag(cmd, cmd.Flags(), &want.state, "state", "of a frozen SKU in the end", "on", "paused", "ended", "frozen")
	cmd.Flags().BoolVar(&want.apply, "apply", false, "do it")
	return cmd
}

// check reports what cannot be meant.
func (r *recovery) check(at *stockTarget, totalSet bool) error {
	switch {
	case at.kind == "layout":
		return errors.New("--kind layout: only ledgers are recovered")
	case r.from == "" && r.apply:
		return errors.New("--from is missing: name a file with all orders that the shop has, or settle, or none")
	case r.from == fromSettlement && at.Admin != "":
		return errors.New("--from settle reads the database of --config: leave --admin out")
	case totalSet && r.total < 0:
		return fmt.Errorf("--total %d: it must be 0 or more: the units for sale in all, with those that are sold", r.total)
	case r.limit < -1:
		return fmt.Errorf("--limit %d: it must be 0, for none, or the units that one person may have", r.limit)
	case r.limit >= 0 && !totalSet:
		return errors.New("--limit belongs to --total")
	}
	return admin.CheckSKU(r.sku)
}

// recover does it: the orders are read before anything is changed.
func (s *stockTarget) recover(cmd *cobra.Command, want *recovery) error {
	if err := want.check(s, cmd.Flags().Changed("total")); err != nil {
		return cli.Misuse(cmd, err)
	}
	if err := s.check(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), recoverWithin)
	defer cancel()
	to, done, err := s.open()
	if err != nil {
		return err
	}
	defer done()
	want.to, want.out, want.err = to, cmd.OutOrStdout(), os.Stderr
	orders, err := s.ordersOf(ctx, want)
	if err != nil {
		return err
	}
	if !want.apply {
		if _, err = want.take(ctx, orders); err == nil {
			add := "add --apply"
			if !cmd.Flags().Changed("from") {
				add = "add --from FILE|settle|none and --apply"
			}
			fmt.Fprintf(want.err, "sluice: nothing was changed; %s; the state of a frozen SKU becomes %q (--state)\n", add, want.state)
		}
		return err
	}
	return want.run(ctx, orders)
}

// ordersOf reads the orders of --from; in a preview without it, those of the settlement's database, if there is one.
func (s *stockTarget) ordersOf(ctx context.Context, want *recovery) ([]admin.Order, error) {
	if want.from == "" {
		want.from = fromNowhere
		if c, err := config.Load(s.Config, os.LookupEnv); s.Admin == "" && err == nil && c.Settle.Database != "" {
			want.from = fromSettlement
		}
	}
	switch {
	case want.from == fromNowhere:
		return nil, nil
	case want.from == fromSettlement && want.total < 0:
		return settledOrders(ctx, s.Config, "--unknown", "--", want.sku)
	case want.from == fromSettlement:
		return settledOrders(ctx, s.Config, "--", want.sku)
	}
	orders, others, err := openOrders(want.from, want.sku)
	if err == nil && others > 0 {
		fmt.Fprintf(want.err, "sluice: %d orders of other SKUs in %s are passed over\n", others, want.from)
	}
	return orders, err
}

// run puts the ledger back.
func (r *recovery) run(ctx context.Context, orders []admin.Order) error {
	path := "/stock/" + adminclient.Segment(r.sku)
	if r.total >= 0 {
		in := map[string]any{"total": r.total, "none": r.from == fromNowhere, "apply": true}
		if r.limit >= 0 {
			in["limit"] = r.limit
		}
		if err := r.to.Call(ctx, "POST", path+"/recover", in, new(admin.Recovery)); err != nil {
			return err
		}
	}
	var before admin.Stock
	if err := r.to.Call(ctx, "GET", path+"?kind=ledger", nil, &before); err != nil {
		return err
	}
	closed := before.Ledger.State == "frozen" || before.Ledger.State == "verifying"
	// A file says what the shop has, or none what it has not. The database may lack what only an instance knows.
	if closed && (r.total >= 0 || r.from == fromSettlement && r.state != "frozen") {
		fmt.Fprintf(r.err, "sluice: %s is %s; waiting for what running instances know of its orders\n", r.sku,
			before.Ledger.State)
		if err := r.awaitTold(ctx, path); err != nil {
			return err
		}
	}
	all, err := r.take(ctx, orders)
	switch {
	case err != nil && closed:
		return fmt.Errorf("%w\n%s stays %s: say the same command again", err, r.sku, before.Ledger.State)
	case err != nil:
		return err
	case len(all.Conflicts) > 0:
		return fmt.Errorf("%d orders contradict what the ledger has of their serials, and were passed over; a frozen SKU stays "+
			"frozen: compare them with the shop; where the ledger is right: sluice stock recover %s --from none --apply",
			len(all.Conflicts), r.sku)
	case !closed || r.state == "frozen":
		return nil
	}
	if err := r.to.Call(ctx, "POST", path+"/recover", map[string]any{"state": r.state, "apply": true}, &all); err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.out, stores.DescribeStock(*all.Stock))
	return err
}

// awaitTold waits until every instance that knows orders of before has told them.
func (r *recovery) awaitTold(ctx context.Context, path string) error {
	var all struct{ Stock []admin.Stock }
	if err := r.to.Call(ctx, "GET", "/stock?kind=ledger&limit=10000", nil, &all); err != nil {
		return err
	}
	start, wait := time.Now(), min(toldAfter+time.Duration(len(all.Stock)/100)*time.Second, maxToldAfter)
	for {
		if !periodic.Pause(ctx, time.Second) {
			return ctx.Err()
		}
		var now admin.Stock
		err := r.to.Call(ctx, "GET", path+"?kind=ledger", nil, &now)
		took := time.Since(start)
		switch {
		case err == nil && now.Ledger.Untold == 0 && now.Ledger.State != "verifying" && took > wait:
			return nil
		case err == nil && took > toldWithin:
			return fmt.Errorf("%d instances or settlers cannot tell all that they know of %s: they have died, or took more "+
				"orders than they remember; it stays %s; give it every order that the shop has: sluice stock recover %s "+
				"--from FILE --apply", now.Ledger.Untold, r.sku, now.Ledger.State, r.sku)
		case err != nil && took > toldWithin:
			return err
		}
	}
}

// take sends the orders to the ledger, some at a time, and prints what came of it, or would.
func (r *recovery) take(ctx context.Context, orders []admin.Order) (all admin.Recovery, err error) {
	all.SKU, all.Applied = r.sku, r.apply
	for first := true; first || len(orders) > 0; first = false {
		some := orders[:min(len(orders), ordersAtOnce)]
		orders = orders[len(some):]
		var done admin.Recovery
		in := map[string]any{"orders": some, "apply": r.apply, "missing": r.from == fromSettlement}
		if r.total >= 0 && !r.apply {
			in["total"] = r.total
		}
		if err := r.to.Call(ctx, "POST", "/stock/"+adminclient.Segment(r.sku)+"/recover", in, &done); err != nil {
			return all, err
		}
		all.Unknown, all.Held, all.Sold, all.Returned = all.Unknown+done.Unknown, all.Held+done.Held, all.Sold+done.Sold,
			all.Returned+done.Returned
		all.Units, all.Stock = all.Units+done.Units, done.Stock
		all.Conflicts = append(all.Conflicts, done.Conflicts...)
	}
	r.print(&all)
	return all, nil
}

// print shows both books: the ledger, and what --from adds to it.
func (r *recovery) print(a *admin.Recovery) {
	name, verb, already := stores.PrintableName(r.sku), "would be", "sold"
	if a.Applied {
		verb = "are"
	}
	if r.from == fromSettlement {
		already = "known"
	}
	var free int64
	if a.Stock != nil {
		fmt.Fprintln(r.out, stores.DescribeStock(*a.Stock))
		free = a.Stock.Ledger.Free
		if !a.Applied {
			free += a.Stock.Ledger.Held
		}
	} else {
		fmt.Fprintf(r.out, "%s\t-\tits ledger is gone, and would be made again with a total of %d\n", name, r.total)
		free = r.total
	}
	if r.from == fromSettlement && a.Unknown == 0 && a.Stock != nil {
		fmt.Fprintf(r.out, "%s\tsettle: the ledger knows every order that the database has\n", name)
	} else if r.from != fromNowhere {
		fmt.Fprintf(r.out, "%s\t%s: %d orders were not known, %d held, %d given back: %d units %s sold by them; %d were %s "+
			"already\n", name, r.from, a.Unknown, a.Held, a.Returned, a.Units, verb, a.Sold, already)
	}
	for _, conflict := range a.Conflicts {
		fmt.Fprintf(r.out, "%s\tpassed over: %s\n", name, stores.PrintableName(conflict))
	}
	if a.Applied && free < 0 || !a.Applied && free < a.Units {
		fmt.Fprintf(r.err,
			"sluice: the ledger has more of %s sold then than there is: refund the orders that the shop does not have any more "+
				"(sluice reservation refund), and for the rest raise the total, or cancel orders at the shop\n", name)
	}
}

// openOrders reads the orders of a SKU in a file; "-" = standard input. others is how many there are of other SKUs.
func openOrders(path, sku string) (orders []admin.Order, others int, err error) {
	in := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		in = file
	}
	all, err := readOrders(in, sku)
	if err == nil && all[sku] == nil {
		err = fmt.Errorf("it has no order of %s; where the shop has none: --from none", sku)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	for _, some := range all {
		others += len(some)
	}
	return slices.Clip(all[sku]), others - len(all[sku]), nil
}
