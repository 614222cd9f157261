package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/internal/cli"
	"sluice/internal/settler"
	"sluice/settle"
)

func newRetry(file *string) *cobra.Command {
	return onConflict(file, &cobra.Command{
		Use: "retry <id>", Short: "Settle an entry that was parked as a conflict, and solve the conflict.", Args: cli.Exactly,
	}, func(cmd *cobra.Command, s *settler.Settlement, id int64) error {
		c, err := s.Store.Conflict(cmd.Context(), id)
		if err != nil {
			return err
		}
		o, err := settle.Retry(cmd.Context(), s.Store, c)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "conflict %d of %s is solved: %d units deducted\n", id, printable(c.SKU), o.Units)
		return nil
	})
}

func newSolve(file *string) *cobra.Command {
	cmd := onConflict(file, &cobra.Command{
		Use: "solve <id>", Short: "Solve a conflict that you have put right by hand.", Args: cli.Exactly,
	}, func(cmd *cobra.Command, s *settler.Settlement, id int64) error {
		c, err := settle.Solve(cmd.Context(), s.Store, id)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "conflict %d of %s is solved\n", id, printable(c.SKU))
		}
		return err
	})
	cmd.Long = cmd.Short + "\nAfter one of kind stock, every booked order of the SKU counts as deducted: correct the\n" +
		"stock before. A conflict that the settler finds again is open again."
	return cmd
}

// onConflict is a command about one conflict, its argument.
func onConflict(file *string, cmd *cobra.Command,
	do func(*cobra.Command, *settler.Settlement, int64) error) *cobra.Command {
	var home string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return cli.Misuse(cmd, fmt.Errorf("%q is not the number of a conflict", args[0]))
		}
		homes, _, err := openHomes(*file)
		if err != nil {
			return err
		}
		defer homes.Close()
		if len(homes) > 1 && !cmd.Flags().Changed("home") {
			return cli.Misuse(cmd, errors.New("--home: name the home; each database numbers its conflicts"))
		}
		s, err := homes.Named(home)
		if err != nil {
			return err
		}
		return do(cmd, s, id)
	}
	cmd.Flags().StringVar(&home, "home", config.MainHome, "the `home` whose database has the conflict")
	return cmd
}

func newRebuild(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rebuild <sku>", Short: "Read all orders of a SKU from Redis, and make them those of the database.",
		Args: cli.Exactly, ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			homes, c, err := openHomes(*file)
			if err != nil {
				return err
			}
			defer homes.Close()
			s, err := atHomeOf(cmd, homes, args[0])
			if err != nil {
				return err
			}
			worker, err := s.Settler(c, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			told, err := worker.Rebuild(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if told {
				return fmt.Errorf("%s is frozen: Redis had lost orders that the database knows, and they were put back; "+
					"open it with sluice stock recover %s, then repeat", printable(args[0]), printable(args[0]))
			}
			_, err = verifyOne(cmd, s, args[0])
			return err
		},
	}
	cmd.Long = cmd.Short + "\nIt solves the conflicts of kind entry of the SKU. A settler may run meanwhile.\n" +
		"Orders that only the database knows as sold or refunded are told to the ledger first, which is frozen then."
	return cmd
}

func newArchive(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "archive <sale>", Short: "Free the memory in Redis of a sale that is over and settled.", Args: cli.Exactly,
		ValidArgsFunction: cli.CompleteBy((*config.Config).SaleNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			homes, c, err := openHomes(*file)
			if err != nil {
				return err
			}
			defer homes.Close()
			i := slices.IndexFunc(c.Sales, func(sale config.Sale) bool { return sale.Name == args[0] })
			if i < 0 {
				return fmt.Errorf("%q is no sale of the configuration", args[0])
			}
			return archiveSale(cmd, homes, c, i)
		},
	}
	cmd.Long = cmd.Short + "\nEach SKU is archived whose orders in Redis and in the database are the same at one\n" +
		"position, and of which no order is undecided. Its ledger stays, ended and without units."
	return cmd
}

// archiveSale archives each SKU of a sale that can be. cli.ErrReported says that one could not be.
func archiveSale(cmd *cobra.Command, homes settler.Homes, of *config.Config, sale int) error {
	now, err := homes[0].Stream.Now(cmd.Context())
	if err != nil {
		return err
	}
	var failed error
	for _, sku := range of.Sales[sale].SKUs {
		if next := following(of.Sales, sale, sku, now); next != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "sluice-settle: archive %q: the sale %q sells it too, from %s to %s; nothing was freed; "+
				"archive it when that sale is over\n", sku, next.Name, next.Starts.Format(time.RFC3339),
				next.Ends.Format(time.RFC3339))
			failed = cli.ErrReported
			continue
		}
		s, err := atHomeOf(cmd, homes, sku)
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "sluice-settle:", err)
			failed = cli.ErrReported
			continue
		}
		c, ok, err := settle.Archive(cmd.Context(), s.Stream, s.Store, s, sku)
		switch {
		case cmd.Context().Err() != nil:
			return errors.Join(err, cmd.Context().Err())
		case err != nil:
			fmt.Fprintln(os.Stderr, "sluice-settle:", err)
			failed = cli.ErrReported
		case !ok:
			fmt.Fprintf(cmd.OutOrStdout(), "%s has no ledger\n", printable(sku))
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%s at %s: archived; %d records freed, %d units sold\n", printable(sku), c.At,
				c.Records, c.Sold)
		}
	}
	return failed
}

// following is the first other sale of a SKU that is not over at now; nil = there is none. Its stock would be that of
// the archived ledger, which has no unit.
func following(sales []config.Sale, but int, sku string, now time.Time) (next *config.Sale) {
	for i := range sales {
		other := &sales[i]
		if i != but && other.Ends.After(now) && slices.Contains(other.SKUs, sku) &&
			(next == nil || other.Starts.Before(next.Starts)) {
			next = other
		}
	}
	return next
}

func newMove(file *string) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "move <sku>", Short: "Settle a SKU in another home from now on.", Args: cli.Exactly,
		ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return cli.Misuse(cmd, errors.New("--to: name the home to which the SKU moves"))
			}
			homes, c, err := openHomes(*file)
			if err != nil {
				return err
			}
			defer homes.Close()
			before, unmarked, err := homes.Move(cmd.Context(), c, args[0], to)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is settled in %s now; it was in %s\n", printable(args[0]), to, before)
			if unmarked != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "sluice-settle: a database does not know yet that the SKU is elsewhere; its settlers "+
					"write nothing there, and mark its rows when it is back: %v\n", unmarked)
			}
			s, err := homes.Named(to)
			if err == nil {
				_, err = verifyOne(cmd, s, args[0])
			}
			return err
		},
	}
	cmd.Long = cmd.Short + "\nThe new home reads all orders from Redis. The old one may be down: it writes\n" +
		"nothing of the SKU when it is back. Repeat the command where it was broken off.\n" +
		"Write the SKU into skus of its new home afterwards."
	cmd.Flags().StringVar(&to, "to", "", "the `home` to which it moves")
	return cmd
}
