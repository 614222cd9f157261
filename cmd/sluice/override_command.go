package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"sluice/admin"
)

type overrideCommand struct {
	Set   overrideSet   `cmd:"" help:"Another value for a key of the configuration, such as limits.window.max 50."`
	Pause overridePause `cmd:"" help:"Stop selling a SKU of a ledger for a while."`
	End   overrideEnd   `cmd:"" help:"Tell shoppers for a while that the sale of a SKU is over."`
	Undo  overrideUndo  `cmd:"" help:"End an override before its time."`
	List  overridesList `cmd:"" help:"Show what is overridden."`
}

// until is how long an override lasts: one of both.
type until struct {
	For   string `help:"How long it lasts: 90s, 10m, 2h; at most 24h." placeholder:"10m"`
	Until string `help:"Or until when (RFC 3339)." placeholder:"TIME"`
}

// Validate is called when the line is read; its error is one of usage.
func (u *until) Validate() error {
	if (u.For == "") == (u.Until == "") {
		return errors.New("--for=10m or --until=TIME: name one of them")
	}
	return nil
}

type overrideSet struct {
	Key   string      `arg:"" help:"Such as limits.window.max, limits.rate[NAME].burst, route[NAME].max_in_flight, mode."`
	Value string      `arg:"" help:"As a file would have it, without quotes: 50, 20/s, observe, false."`
	Last  until       `embed:""`
	At    runningGate `embed:""`
}

func (o *overrideSet) Run() error {
	return o.Last.send(&o.At, map[string]any{"key": o.Key, "value": valueOf(o.Value)})
}

// valueOf is what a word means in a file: a number, a boolean, or text.
func valueOf(word string) any {
	var v any
	if json.Unmarshal([]byte(word), &v) == nil {
		switch v.(type) {
		case float64, bool:
			return v
		}
	}
	return word
}

type overridePause struct {
	SKU  string      `arg:"" name:"sku"`
	Last until       `embed:""`
	At   runningGate `embed:""`
}

func (o *overridePause) Run() error {
	return o.Last.send(&o.At, map[string]any{"sku": o.SKU, "value": "paused"})
}

type overrideEnd struct {
	SKU  string      `arg:"" name:"sku"`
	Last until       `embed:""`
	At   runningGate `embed:""`
}

func (o *overrideEnd) Run() error {
	return o.Last.send(&o.At, map[string]any{"sku": o.SKU, "value": "ended"})
}

// send asks for an override, and prints it.
func (u *until) send(to *runningGate, want map[string]any) error {
	if u.For != "" {
		want["for"] = u.For
	} else {
		want["until"] = u.Until
	}
	var done admin.Override
	if err := to.ask("POST", "/overrides", want, &done); err != nil {
		return err
	}
	fmt.Printf("override %s: %s%s = %v until %s, then %v again\n", done.ID, done.Key, done.SKU, done.Value, done.Until.Local().Format(time.DateTime), done.Before)
	if done.TOML != "" {
		fmt.Printf("\nto keep it for good, in the file:\n%s", done.TOML)
	}
	return nil
}

type overrideUndo struct {
	ID string      `arg:"" name:"id"`
	At runningGate `embed:""`
}

func (o *overrideUndo) Run() error {
	var done admin.Override
	if err := o.At.ask("DELETE", "/overrides/"+segment(o.ID), nil, &done); err != nil {
		return err
	}
	fmt.Printf("override %s undone: %s%s is %v again\n", done.ID, done.Key, done.SKU, done.Before)
	return nil
}

type overridesList struct {
	At runningGate `embed:""`
}

func (o *overridesList) Run() error {
	var all struct{ Overrides []admin.Override }
	if err := o.At.ask("GET", "/overrides", nil, &all); err != nil {
		return err
	}
	rows := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, one := range all.Overrides {
		fmt.Fprintf(rows, "%s\t%s%s\t%v\tinstead of %v\tuntil %s\t%s\n", one.ID, one.Key, one.SKU, one.Value, one.Before, one.Until.Local().Format(time.DateTime), one.Who)
	}
	return rows.Flush()
}
