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
	"sluice/gateway/stores"
	"sluice/internal/cli"
	"sluice/proxy/reject"
)

func newWhy() *cobra.Command {
	var at target
	var user, sku string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "why [request-id]", Example: "  sluice why <request-id>\n  sluice why --user USER --sku SKU",
		Short: "Show what became of a request, by X-Request-Id of its response.",
		Long:  "Show what became of a request, by X-Request-Id of its response. The exit code is 3 if that is not known.",
		Args:  cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := argument(args, "")
			if id == "" && (user == "" || sku == "") {
				return cli.Misuse(cmd, errors.New("name a request ID, or --user and --sku"))
			}
			query := url.Values{"request_id": {id}, "user": {user}, "sku": {sku}}
			var found admin.Decisions
			if err := at.callAPI(cmd, "GET", "/why?"+query.Encode(), nil, &found); err != nil {
				return err
			}
			if len(found.Decisions) == 0 {
				fmt.Fprintln(os.Stderr, noEntry(found.Since, id == ""))
				return cli.ErrOnline
			}
			return printDecisions(cmd.OutOrStdout(), found.Decisions, asJSON)
		},
	}
	at.addTo(cmd, cmd.Flags(), aboutGateway)
	cmd.Flags().StringVar(&user, "user", "", "or by the `user` who ordered, as the gateway identifies users ...")
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

// noEntry says why the instance has no line of the log, and where else to look. The buffer begins at since; ordered
// says that an order was asked for, and not a request ID.
func noEntry(since time.Time, ordered bool) string {
	if since.IsZero() {
		return "no log entry: the instance has logged no request yet, or access_log.buffer_size is \"0B\""
	}
	text := "no log entry for this request: the buffer begins at " + since.Local().Format(time.RFC3339) +
		" (access_log.buffer_size), and has a sample of the rejections (access_log.rejected_per_second)\n" +
		"search the file of access_log.output for older requests, and ask the other instances with --admin\n"
	if ordered {
		return text + "check the user: it is the value that the route's user template gives"
	}
	return text + "check the ID: it is X-Request-Id of the response; for an order: sluice reservation get SERIAL"
}

// spellOut prints one line of the log for people: its members in their order, one a row, and what the reason means.
func spellOut(to io.Writer, line json.RawMessage) error {
	rows := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the brace
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("read the gateway's answer: %w", err)
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("read the gateway's answer: %w", err)
		}
		fmt.Fprintf(rows, "%v\t%s\n", name, stores.PrintableName(fmt.Sprint(value)))
		if meaning := reject.MeaningOf(fmt.Sprint(value)); name == "reason" && meaning != "" {
			fmt.Fprintf(rows, "meaning\t%s\n", meaning)
		}
	}
	return rows.Flush()
}
