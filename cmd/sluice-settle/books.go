package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/gateway"
	"sluice/internal/cli"
	"sluice/internal/settler"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

// newService is a command that works by the configuration until a signal comes.
func newService(file *string, use, short string,
	work func(ctx context.Context, c *config.Config, version string, log *slog.Logger) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " until it is stopped. Any number of them may run.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			c, err := config.Load(*file, os.LookupEnv)
			if err != nil {
				return err
			}
			return work(ctx, c, cli.Version(), gateway.NewLog(c.Log, os.Stderr))
		},
	}
}

func newMigrate(file *string) *cobra.Command {
	var printOnly bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Create or change Sluice's tables in the database.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(*file, os.LookupEnv)
			if err != nil {
				return err
			}
			if printOnly {
				unreached, err := settler.Statements(cmd.Context(), c, cmd.OutOrStdout())
				if unreached != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "sluice-settle: this is all of the SQL, for an empty database:", unreached)
				}
				return err
			}
			applied, err := settler.MigrateAll(cmd.Context(), c)
			for _, name := range applied {
				fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "the tables are those of this version")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the SQL that is to be run, and change nothing")
	return cmd
}

// openHomes opens what commands read. The homes must be closed.
func openHomes(file string) (settler.Homes, *config.Config, error) {
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	homes, err := settler.OpenHomes(c, slog.New(slog.DiscardHandler))
	return homes, c, err
}

// eachHome shows every home that can be used. Where one cannot, the others are shown, and the error is the last word.
func eachHome(cmd *cobra.Command, file string, show func(*settler.Settlement, *config.Config) error) error {
	homes, c, err := openHomes(file)
	if err != nil {
		return err
	}
	defer homes.Close()
	var faults []error
	for _, s := range homes {
		err := s.Store.CheckSchema(cmd.Context())
		if err == nil {
			if len(homes) > 1 {
				fmt.Fprintln(cmd.ErrOrStderr(), "home "+s.Name()+":") // JSON and CSV stay whole
			}
			err = show(s, c.AtHome(s.Name()))
		}
		if err != nil && !errors.Is(err, cli.ErrReported) && len(homes) > 1 {
			err = fmt.Errorf("home %s: %w", s.Name(), err)
		}
		faults = append(faults, err)
	}
	return firstReported(faults)
}

// firstReported joins faults; cli.ErrReported counts only where there is no other.
func firstReported(faults []error) error {
	var reported error
	real := slices.DeleteFunc(faults, func(err error) bool {
		if errors.Is(err, cli.ErrReported) {
			reported = cli.ErrReported
			return true
		}
		return err == nil
	})
	if len(real) > 0 {
		return errors.Join(real...)
	}
	return reported
}

// atHomeOf works on the home of a SKU.
func atHomeOf(cmd *cobra.Command, homes settler.Homes, sku string) (*settler.Settlement, error) {
	s, err := homes.Of(cmd.Context(), sku)
	if err != nil {
		return nil, err
	}
	return s, s.Store.CheckSchema(cmd.Context())
}

func newStatus(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show how far the database is, and what waits for an operator.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return eachHome(cmd, *file, func(s *settler.Settlement, c *config.Config) error {
				return printSettleStatus(cmd, s, c)
			})
		},
	}
}

// printSettleStatus shows one line for each SKU, and the conflicts.
func printSettleStatus(cmd *cobra.Command, s *settler.Settlement, c *config.Config) error {
	books, err := s.Store.LedgerTotals(cmd.Context(), "")
	if err != nil {
		return err
	}
	skus, at := make([]string, len(books)), make(map[string]settle.Ledger)
	for i, b := range books {
		skus[i] = b.SKU
	}
	ledgers, errs := s.Stream.EachLedger(cmd.Context(), skus)
	for i, sku := range skus {
		at[sku] = ledgers[i] // the zero Ledger where Redis does not tell
	}
	var away unread
	for i, err := range errs {
		away.add(skus[i], err)
	}
	if away.n > 0 {
		fmt.Fprintf(os.Stderr, "sluice-settle: the changes that wait are not known of %s\n", away)
	}
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SKU\tSETTLED TO\tBEHIND\tSTATE\tTOTAL\tSOLD\tBOOKED\tHELD\tMISSING\tLEFT")
	for _, b := range books {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", printable(b.SKU), b.Position,
			behind(at[b.SKU], b.Cursor), printable(b.State),
			b.Total, b.Sold, b.Booked, b.Undecided, b.Missing, unknownBelow0(b.Left))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := printWebhookStatus(cmd, s, c, books, at); err != nil {
		return err
	}
	if disputes, err := s.Disputes(cmd.Context()); err == nil { // that Redis is away was told
		for _, text := range disputes {
			fmt.Fprintln(cmd.OutOrStdout(), text)
		}
	}
	conflicts, err := s.Store.Conflicts(cmd.Context(), 100)
	for _, c := range conflicts {
		fmt.Fprintf(cmd.OutOrStdout(), "conflict %d: %s of %s at %s: %s\n  way out: %s\n", c.ID, c.Kind, printable(c.SKU),
			c.Position, printable(c.Detail), s.WayOut(cmd.Context(), c.Conflict))
	}
	return err
}

// printWebhookStatus shows how far the webhook is with each SKU that it has begun, or that is booked.
func printWebhookStatus(cmd *cobra.Command, s *settler.Settlement, c *config.Config, books []sqlstore.Totals,
	at map[string]settle.Ledger) error {
	cursors, err := s.Store.For(settle.WebhookTarget).Cursors(cmd.Context())
	if err != nil || len(cursors) == 0 && c.Settle.Webhook.URL == "" {
		return err
	}
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "TARGET\tSKU\tSENT TO\tBEHIND")
	for _, b := range books {
		to, lag := cursors[b.SKU], "all"
		if to.Epoch != 0 {
			lag = behind(at[b.SKU], to)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", settle.WebhookTarget, printable(b.SKU), to.Position, lag)
	}
	if err := out.Flush(); err != nil || c.Settle.Webhook.URL != "" {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "webhook: settle.webhook.url is \"\", and Redis keeps every change that it was not "+
		"sent; to give it up: DELETE FROM sluice_cursor WHERE target = 'webhook'")
	return nil
}

// behind is how many changes of a ledger wait.
func behind(l settle.Ledger, c settle.Cursor) string {
	switch {
	case l.Epoch == 0:
		return "?"
	case l.Ver < c.Ver || l.Born != 0 && l.Born != c.Born:
		return "diverged"
	}
	return fmt.Sprint(l.Ver - c.Ver)
}

func unknownBelow0(n int64) string {
	if n < 0 {
		return "no row"
	}
	return fmt.Sprint(n)
}

// printable is text of users as a terminal and a table take it.
func printable(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	if plain := quoted[1 : len(quoted)-1]; plain == text && !strings.Contains(text, " ") {
		return text
	}
	return quoted
}

func newVerify(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "verify [sku]", Short: "Compare every order in Redis and in the database, at one position.", Args: cli.Exactly,
		ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return eachHome(cmd, *file, func(s *settler.Settlement, _ *config.Config) error { return verifyHome(cmd, s) })
			}
			homes, _, err := openHomes(*file)
			if err != nil {
				return err
			}
			defer homes.Close()
			s, err := atHomeOf(cmd, homes, args[0])
			if err != nil {
				return err
			}
			equal, err := verifyOne(cmd, s, args[0])
			if err == nil && !equal {
				err = cli.ErrReported
			}
			return err
		},
	}
}

// unread are SKUs whose ledgers cannot be read now.
type unread struct {
	n     int
	first string
	err   error // of the first
}

func (u *unread) add(sku string, err error) {
	if err == nil {
		return
	}
	if u.n++; u.n == 1 {
		u.first, u.err = sku, err
	}
}

func (u unread) String() string {
	text := fmt.Sprintf("%s: %v", printable(u.first), u.err)
	if u.n > 1 {
		text += fmt.Sprintf("; and %d more SKUs", u.n-1)
	}
	return text
}

// verifyHome compares every SKU of a home.
func verifyHome(cmd *cobra.Command, s *settler.Settlement) error {
	skus, beyond, err := s.Stream.SKUs(cmd.Context())
	if err != nil {
		return err
	}
	if beyond > 0 {
		fmt.Fprintf(os.Stderr, "sluice-settle: %d SKUs beyond the first %d are neither settled nor compared\n", beyond, len(skus))
	}
	var away unread
	equal := true
	for l, err := range s.Stream.All(cmd.Context()) {
		switch {
		case l.SKU == "":
			return err
		case err != nil: // of one server that is away
			away.add(l.SKU, err)
		case s.Has(l.SKU, l.Ledger):
			same, err := verifyOne(cmd, s, l.SKU)
			if err != nil {
				return err
			}
			equal = equal && same
		}
	}
	if away.n > 0 {
		return fmt.Errorf("not compared: %s", away)
	}
	if !equal {
		return cli.ErrReported
	}
	return nil
}

// verifyOne compares one SKU, and shows what differs.
func verifyOne(cmd *cobra.Command, s *settler.Settlement, sku string) (equal bool, err error) {
	c, ok, err := settle.Verify(cmd.Context(), s.Stream, s.Store, sku)
	if err != nil || !ok {
		return err == nil, err
	}
	word := "equal"
	if !c.Equal() {
		word = "DIFFERENT"
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s at %s: %s; %d records, %d units sold, %d booked, %d deducted\n", printable(sku), c.At, word,
		c.Records,
		c.Sold, c.Booked, c.Deducted)
	for _, d := range c.Differences {
		fmt.Fprintf(out, "  %s: ledger %q, database %q\n", printable(d.Serial), d.Ledger, d.Database)
	}
	if c.More > 0 {
		fmt.Fprintf(out, "  and %d more\n", c.More)
	}
	return c.Equal(), nil
}
