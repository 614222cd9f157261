package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	settlement "sluice/settle"
)

func newSettleRetry(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "retry <id>", Short: "Settle an entry that was parked as a conflict, and solve the conflict.", Args: exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return misuse(cmd, fmt.Errorf("%q is not the number of a conflict", args[0]))
			}
			s, _, err := openSettlement(cmd.Context(), *file)
			if err != nil {
				return err
			}
			defer s.Close()
			c, err := s.Store.Conflict(cmd.Context(), id)
			if err != nil {
				return err
			}
			o, err := settlement.Retry(cmd.Context(), s.Store, c)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "conflict %d of %s is solved: %d units deducted\n", id, printable(c.SKU), o.Units)
			return nil
		},
	}
}
