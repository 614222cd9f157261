package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/accesslog"
	"sluice/admin"
)

type whyCommand struct {
	RequestID string `help:"The request's id, as the answer's X-Request-Id told it." placeholder:"ID"`
	User      string `help:"Or whoever bought, as the gate identifies users …" placeholder:"USER"`
	SKU       string `help:"… and what was bought." placeholder:"SKU"`
	JSON      bool   `name:"json" help:"Print the lines of the log."`

	At runningGate `embed:""`
}

// errNotFound ends a command that found nothing, where that is an answer and no fault.
var errNotFound = errors.New("not found")

// Validate is called when the line is read; its error is one of usage.
func (w *whyCommand) Validate() error {
	if w.RequestID == "" && (w.User == "" || w.SKU == "") {
		return errors.New("name --request-id, or --user and --sku")
	}
	return nil
}

func (w *whyCommand) Run() error {
	to, err := w.At.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), operateWithin)
	defer cancel()
	asked := url.Values{"request_id": {w.RequestID}, "user": {w.User}, "sku": {w.SKU}}
	var found admin.Decisions
	if err := to.call(ctx, "GET", "/why?"+asked.Encode(), nil, &found); err != nil {
		return err
	}
	if len(found.Decisions) == 0 {
		fmt.Fprintln(os.Stderr, unknownSince(found.Since))
		return errNotFound
	}
	for i, line := range found.Decisions {
		switch {
		case w.JSON:
			fmt.Println(string(line))
			continue
		case i > 0:
			fmt.Println()
		}
		if err := spellOut(os.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// reachableFromHere is a listener's address as it is asked on this machine.
func reachableFromHere(listen string) string {
	for _, all := range []string{"0.0.0.0:", "[::]:", ":"} {
		if port, ok := strings.CutPrefix(listen, all); ok {
			return "127.0.0.1:" + port
		}
	}
	return listen
}

func unknownSince(since time.Time) string {
	if since.IsZero() {
		return "nothing is remembered: no request has come yet, or access_log.remember is \"0B\""
	}
	return "nothing is remembered of it; what is remembered begins at " + since.Local().Format(time.RFC3339) +
		", and of the refusals it is a sample (access_log.refused_first, refused_every)"
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
		fmt.Fprintf(rows, "%v\t%s\n", name, spelt(fmt.Sprint(value)))
	}
	return rows.Flush()
}

// why answers the control API out of what the access log remembers.
func (g *gate) why(q admin.Question, most int) admin.Decisions {
	found := g.access.Find(accesslog.Question(q), most)
	return admin.Decisions{Decisions: found.Lines, Since: found.Since}
}
