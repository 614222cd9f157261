package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

func newOverride() *cobra.Command {
	cmd, at := parentOf("override", "Change a limit for a while, on all instances.", aboutGateway)
	cmd.FParseErrWhitelist.UnknownFlags = true // --for of a command that is elsewhere now
	var lasts period
	var here bool
	set := &cobra.Command{
		Use: "set <key> <value>", Short: "Override a key of the configuration, such as limits.window.max 50.",
		Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := gateway.CheckOverridable(args[0]); err != nil {
				return err
			}
			in := map[string]any{"key": args[0], "value": valueOf(args[1])}
			if here {
				in["scope"] = admin.ScopeInstance
			}
			return at.override(cmd, &lasts, in)
		},
	}
	lasts.addTo(set)
	instanceFlag(set, &here)
	set.Long = "Override a key of the configuration: limits.window.max, limits.rate[NAME].burst, " +
		"route[NAME].max_in_flight, mode.\n" +
		"The value is written as in the file, without quotes: 50, 20/s, observe, false."
	set.ValidArgsFunction = cli.CompleteBy(overridableKeys)
	cmd.AddCommand(set, newOverrideUndo(at), newOverrideList(at))
	return cmd
}

// overridableKeys are the keys that an operator may override; those of single routes and rates by their names.
func overridableKeys(c *config.Config) (keys []string) {
	for _, s := range c.Settings() {
		if gateway.CheckOverridable(s.Key) == nil {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// period is how long an override lasts, by its flags.
type period struct{ span, until string }

func (p *period) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.span, "for", "", "how `long` it lasts: 90s, 10m, 2h; at most 24h")
	cmd.Flags().StringVar(&p.until, "until", "", "or until when, as a `time` of RFC 3339")
}

// override asks a running gateway for the override in, which lasts as long as p says.
func (t *target) override(cmd *cobra.Command, p *period, in map[string]any) error {
	switch {
	case (p.span == "") == (p.until == ""):
		return cli.Misuse(cmd, errors.New("--for=10m or --until=TIME: name one of them"))
	case p.span != "":
		in["for"] = p.span
	default:
		in["until"] = p.until
	}
	var done admin.Override
	if err := t.callAPI(cmd, "POST", "/overrides", in, &done); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "override %s, %s: %s%s = %v until %s, then %v again\n", done.ID, scopeText(done.Scope), done.Key,
		done.SKU, done.Value, done.Until.Local().Format(time.DateTime), done.Before)
	if done.Already {
		fmt.Fprintf(out, "nothing changes now: %v was in force already; the override keeps it until then\n", done.Value)
	}
	if done.TOML != "" {
		fmt.Fprintf(out, "\nto keep it for good, in the file:\n%s", done.TOML)
	}
	return nil
}

// scopeText says where an override holds.
func scopeText(scope string) string {
	if scope == admin.ScopeFleet {
		return "all instances"
	}
	return "this instance"
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

func newOverrideUndo(at *target) *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use: "undo <id|key|sku>", Short: "End an override before its time.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := overrideID(cmd, at, args[0], here)
			if err != nil {
				return err
			}
			var done admin.Override
			if err := at.callAPI(cmd, "DELETE", "/overrides/"+adminclient.Segment(id), nil, &done); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "override %s undone: %s%s is %v again\n", done.ID, done.Key, done.SKU,
				done.Before)
			return err
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
			var all struct{ Overrides []admin.Override }
			if len(args) == 0 && at.callAPI(cmd, "GET", "/overrides", nil, &all) == nil {
				for _, one := range all.Overrides {
					ids = append(ids, cobra.CompletionWithDesc(one.ID, fmt.Sprintf("%s%s = %v", one.Key, one.SKU, one.Value)))
				}
			}
			return slices.Clip(ids), cobra.ShellCompDirectiveNoFileComp
		},
	}
	instanceFlag(cmd, &here)
	return cmd
}

// overrideID is the number of the override that name means: itself, or the only one of a key or a SKU. here leaves
// those of the fleet out.
func overrideID(cmd *cobra.Command, at *target, name string, here bool) (string, error) {
	var all struct{ Overrides []admin.Override }
	if err := at.callAPI(cmd, "GET", "/overrides", nil, &all); err != nil {
		return "", err
	}
	var ids []string
	for _, one := range all.Overrides {
		if here && one.Scope != admin.ScopeInstance {
			continue
		}
		if one.ID == name {
			return name, nil
		}
		if one.Key == name || one.SKU == name {
			ids = append(ids, one.ID)
		}
	}
	if len(ids) > 1 {
		return "", fmt.Errorf("override %q: several hold for it: %s; undo one of them by its number", name,
			strings.Join(ids, ", "))
	}
	if here && len(ids) == 0 {
		return "", fmt.Errorf("override %q: this instance alone has none; see sluice override list, and leave --instance out "+
			"for one of the fleet", name)
	}
	return append(ids, name)[0], nil
}

func newOverrideList(at *target) *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use: "list", Short: "Show what is overridden.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all struct {
				Overrides []admin.Override `json:"overrides"`
			}
			if err := at.callAPI(cmd, "GET", "/overrides", nil, &all); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, all)
			}
			if len(all.Overrides) == 0 {
				fmt.Fprintln(os.Stderr, "nothing is overridden")
			}
			rows := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			for _, one := range all.Overrides {
				fmt.Fprintf(rows, "%s\t%s%s\t%v\tinstead of %v\tuntil %s\t%s\t%s\n", one.ID, one.Key, one.SKU, one.Value,
					one.Before,
					one.Until.Local().Format(time.DateTime), scopeText(one.Scope), one.Who)
			}
			return rows.Flush()
		},
	}, &asJSON)
}
