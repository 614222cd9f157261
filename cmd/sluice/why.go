package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/app/stores"
)

// errNotFound ends a command that found nothing, where that is an answer and no fault.
var errNotFound = errors.New("not found")

func newWhy() *cobra.Command {
	var at target
	var id, user, sku string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "why", Short: "Show what became of a request. Exit code 3 where that is not known.", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id == "" && (user == "" || sku == "") {
				return misuse(cmd, errors.New("name --request-id, or --user and --sku"))
			}
			query := url.Values{"request_id": {id}, "user": {user}, "sku": {sku}}
			var found admin.Decisions
			if err := at.callAPI(cmd, "GET", "/why?"+query.Encode(), nil, &found); err != nil {
				return err
			}
			if len(found.Decisions) == 0 {
				fmt.Fprintln(os.Stderr, unknownSince(found.Since))
				return errNotFound
			}
			return printDecisions(cmd.OutOrStdout(), found.Decisions, asJSON)
		},
	}
	at.addTo(cmd, cmd.Flags(), "configuration `file` of the running gateway")
	cmd.Flags().StringVar(&id, "request-id", "", "the request's `id`, as X-Request-Id of its response has it")
	cmd.Flags().StringVar(&user, "user", "", "or the `user` who ordered, as the gateway identifies users ...")
	skuFlag(cmd, &sku, "... and the `SKU`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lines of the access log")
	return cmd
}

func printDecisions(out io.Writer, lines []json.RawMessage, asJSON bool) error {
	for i, line := range lines {
		if asJSON {
			fmt.Fprintln(out, string(line))
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := spellOut(out, line); err != nil {
			return err
		}
	}
	return nil
}

func unknownSince(since time.Time) string {
	if since.IsZero() {
		return "nothing is remembered: no request has come yet, or access_log.buffer_size is \"0B\""
	}
	return "nothing is remembered of it; what is remembered begins at " + since.Local().Format(time.RFC3339) +
		", and of the rejections it is a sample (access_log.rejected_per_second)"
}

// spellOut prints one line of the log for people: its members in their order, one a row.
func spellOut(to io.Writer, line json.RawMessage) error {
	rows := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the brace
		return fmt.Errorf("read the gate's answer: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("read the gate's answer: %w", err)
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("read the gate's answer: %w", err)
		}
		fmt.Fprintf(rows, "%v\t%s\n", name, stores.PrintableName(fmt.Sprint(value)))
	}
	return rows.Flush()
}
