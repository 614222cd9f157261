package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/internal/cli"
	"sluice/internal/settler"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

const (
	maxFindings = 1000 // that are shown of one SKU and rule, and of the conflicts of a home
	maxFaults   = 20   // of SKUs: then the database is away, or the query is wrong
)

// settleFinding is a line of the report. Units that were sold too often come first.
type settleFinding struct {
	Kind   string `json:"kind"` // "oversold" "over_limit" "stock" "conflict" "unsold" "waiting"
	SKU    string `json:"sku"`
	Name   string `json:"name,omitempty"` // serial or buyer
	Units  int64  `json:"units"`
	Detail string `json:"detail"`
}

func newReport(file *string) *cobra.Command {
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use: "report", Short: "Show what does not add up: oversold first.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && asCSV {
				return cli.Misuse(cmd, errors.New("--json and --csv: name one of them"))
			}
			oversold, rest := []settleFinding{}, []settleFinding{}
			err := eachHome(cmd, *file, func(s *settler.Settlement, c *config.Config) error {
				first, then, err := settleFindings(cmd, s, c)
				oversold, rest = append(oversold, first...), append(rest, then...)
				return err
			})
			found := append(oversold, rest...)
			switch {
			case err != nil && len(found) == 0:
			case asJSON:
				err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"findings": found}))
			case asCSV:
				err = errors.Join(err, writeFindings(cmd.OutOrStdout(), found))
			default:
				printFindings(cmd.OutOrStdout(), found)
			}
			if err == nil && slices.ContainsFunc(found, func(f settleFinding) bool { return f.Kind != "waiting" }) {
				err = cli.ErrReported // while a sale is on some changes always wait
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	return cmd
}

// settleFindings reads the books of all SKUs. The fault of one SKU hides nothing of the others.
func settleFindings(cmd *cobra.Command, s *settler.Settlement, c *config.Config) (oversold, rest []settleFinding,
	err error) {
	ctx := cmd.Context()
	books, err := s.Store.LedgerTotals(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	ledgers, away := ledgersOf(ctx, s)
	if away.n > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "sluice-settle: whether a user has more than allowed was not checked (over_limit), "+
			"nor whether changes wait (waiting), of", away)
	}
	rest = waitingFindings(s, books, ledgers)
	var faults []error
	for _, b := range books {
		if len(faults) == maxFaults {
			faults = append(faults, errors.New("other SKUs were not looked at, from "+b.SKU+" on"))
			break
		}
		if b.State == settle.Moved {
			continue // its orders are in another home
		}
		if b.Booked > b.Total {
			oversold = append(oversold, settleFinding{"oversold", b.SKU, "", b.Booked - b.Total,
				fmt.Sprintf("%d units are booked of %d", b.Booked, b.Total)})
		}
		rest = append(rest, stockFindings(b, c.Settle.Stock.Table == "")...)
		over, err := s.Store.BuyersOver(ctx, b.SKU, b.Born, ledgers[b.SKU].Limit)
		if err != nil {
			faults = append(faults, err)
		}
		for _, who := range over[:min(len(over), maxFindings)] {
			rest = append(rest, settleFinding{"over_limit", b.SKU, who.User, who.Units,
				fmt.Sprintf("one person may have %d", ledgers[b.SKU].Limit)})
		}
		if c.Settle.OrdersQuery == "" {
			continue
		}
		differ, err := s.Store.CompareShop(ctx, c.Settle.OrdersQuery, b.SKU, b.Born)
		if err != nil {
			faults = append(faults, err)
		}
		for _, d := range differ[:min(len(differ), maxFindings)] {
			detail := fmt.Sprintf("the shop has %d units, the order took %d of the ledger", d.Shop, d.Booked)
			if d.Shop > d.Booked {
				oversold = append(oversold, settleFinding{"oversold", b.SKU, d.Serial, d.Shop - d.Booked, detail})
			} else {
				rest = append(rest, settleFinding{"unsold", b.SKU, d.Serial, d.Booked - d.Shop, detail})
			}
		}
	}
	conflicts, err := s.Store.Conflicts(ctx, maxFindings)
	for _, c := range conflicts {
		rest = append(rest, settleFinding{"conflict", c.SKU, c.Kind, 0, c.Detail})
	}
	return oversold, rest, errors.Join(append(faults, err)...)
}

// stockFindings compare the stock table with what is booked. The shop changes a table of its own itself: there only
// what Sluice has deducted is known.
func stockFindings(b sqlstore.Totals, own bool) (found []settleFinding) {
	if b.Deducted != b.Booked {
		found = append(found, settleFinding{"stock", b.SKU, "", b.Booked - b.Deducted,
			fmt.Sprintf("the stock table was lowered by %d, and %d units are booked", b.Deducted, b.Booked)})
	}
	switch {
	case !own || b.Left == b.Expected():
	case b.Left < 0:
		found = append(found, settleFinding{"stock", b.SKU, "", -b.Expected(), fmt.Sprintf(
			"sluice_stock has no row, and %d should be left: %d without the %d that are booked", b.Expected(), b.Total,
			b.Booked)})
	default:
		found = append(found, settleFinding{"stock", b.SKU, "", b.Left - b.Expected(), fmt.Sprintf(
			"sluice_stock has %d units left, and %d should be left: %d without the %d that are booked", b.Left, b.Expected(),
			b.Total, b.Booked)})
	}
	return found
}

// ledgersOf are the ledgers in Redis of all SKUs that may have one.
func ledgersOf(ctx context.Context, s *settler.Settlement) (ledgers map[string]settle.Ledger, away unread) {
	ledgers = make(map[string]settle.Ledger)
	for l, err := range s.Stream.All(ctx) {
		if l.SKU == "" {
			away.add("all", err)
			return ledgers, away
		}
		away.add(l.SKU, err)
		ledgers[l.SKU] = l.Ledger // the zero Ledger where Redis does not tell
	}
	return ledgers, away
}

// waitingFindings are the SKUs of which Redis has changes that are not booked: what is booked may balance, and is not
// all that was sold.
func waitingFindings(s *settler.Settlement, books []sqlstore.Totals, ledgers map[string]settle.Ledger) (
	found []settleFinding) {
	cursors := make(map[string]settle.Cursor, len(books))
	for _, b := range books {
		cursors[b.SKU] = b.Cursor
	}
	for _, sku := range slices.Sorted(maps.Keys(ledgers)) {
		l, c := ledgers[sku], cursors[sku]
		lag := behind(l, c)
		if c.Epoch == 0 {
			lag = "all"
		}
		if l.Epoch != 0 && lag != "0" && s.Has(sku, l) {
			found = append(found, settleFinding{"waiting", sku, "", l.Sold - c.Sold, fmt.Sprintf("sold and not settled yet; "+
				"changes that wait in Redis: %s; if they stay, /readyz?verbose of sluice-settle run says why", lag)})
		}
	}
	return found
}

func printFindings(out io.Writer, found []settleFinding) {
	for _, f := range found {
		name := f.SKU
		if f.Name != "" {
			name = f.SKU + " " + f.Name
		}
		fmt.Fprintf(out, "%s: %s: %d units: %s\n", f.Kind, printable(name), f.Units, printable(f.Detail))
	}
	if len(found) == 0 {
		fmt.Fprintln(out, "the books balance")
	}
}

// writeFindings writes CSV. Text that a spreadsheet would take for a formula begins with an apostrophe.
func writeFindings(out io.Writer, found []settleFinding) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"kind", "sku", "name", "units", "detail"}) // Flush keeps the error
	for _, f := range found {
		row := []string{f.Kind, printable(f.SKU), printable(f.Name), fmt.Sprint(f.Units), printable(f.Detail)}
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) && i != 3 {
				row[i] = "'" + cell
			}
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}
