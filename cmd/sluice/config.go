package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sluice"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway"
	"sluice/internal/cli"
)

func newConfig() *cobra.Command {
	cmd := cli.Parent("config", "Show the configuration that is in force.")
	cmd.AddCommand(newConfigPrint())
	return cmd
}

func newConfigPrint() *cobra.Command {
	var at target
	var origin, changed bool
	cmd := &cobra.Command{
		Use: "print [file]", Short: "Print every key with its value; secrets are not shown.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := settings(cmd, &at, argument(args, at.Config))
			if err != nil {
				return err
			}
			printSettings(cmd.OutOrStdout(), all, origin, changed)
			return nil
		},
	}
	at.addTo(cmd, cmd.Flags(), "configuration `file`")
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value is from")
	cmd.Flags().BoolVar(&changed, "changed", false, "only what is not the default")
	return cmd
}

// settings are those in force in a running gateway, or those of a file.
func settings(cmd *cobra.Command, at *target, file string) (all []admin.Setting, err error) {
	if at.Admin != "" {
		var found admin.Settings
		err = at.callAPI(cmd, "GET", "/config", nil, &found)
		return found.Settings, err
	}
	c, err := config.Load(file, os.LookupEnv, gateway.Validate)
	if err != nil {
		return nil, err
	}
	for _, s := range c.Settings() {
		all = append(all, admin.Setting{Setting: s})
	}
	return all, nil
}

// printSettings writes a file that can be loaded, but for secrets in URLs: first the keys of tables that are there
// once, and then the [[tables]].
func printSettings(to io.Writer, all []admin.Setting, origin, changed bool) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b admin.Setting) int {
		return cmp.Compare(min(strings.Index(a.Key, "["), 0), min(strings.Index(b.Key, "["), 0))
	})
	under := ""
	for _, s := range all {
		if changed && s.Origin == "default" || s.Value == nil { // an empty table of another process is null
			continue
		}
		key := s.Key
		if i := strings.LastIndexByte(key, ']'); i >= 0 {
			if element := key[:i+1]; element != under {
				under = element
				fmt.Fprintf(to, "\n[[%s]]\n", config.WithoutIndexes(element))
			}
			key = key[i+2:]
		}
		text := inText(s.Value)
		if bare := config.WithoutIndexes(s.Key); bare == "sale.starts" || bare == "sale.ends" {
			text = strings.Trim(text, `"`) // a time, which TOML writes without quotes
		}
		line := key + " = " + text
		if origin {
			line = fmt.Sprintf("%-60s # %s", line, s.Origin)
		}
		fmt.Fprintln(to, line)
	}
}

// inText is a value as a file would have it. JSON's text, numbers and booleans are TOML's.
func inText(v any) string {
	switch v := reflect.ValueOf(v); v.Kind() {
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, inText(v.Index(i).Interface()))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case reflect.Map:
		var pairs []string
		for _, k := range v.MapKeys() {
			pairs = append(pairs, strconv.Quote(k.String())+" = "+inText(v.MapIndex(k).Interface()))
		}
		slices.Sort(pairs)
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// explainKey prints what a key means, what it is, and why; ok is false where there is no such key.
func explainKey(to io.Writer, c *config.Config, key string) (ok bool) {
	for _, s := range c.Settings() {
		bare := config.WithoutIndexes(s.Key)
		if s.Key != key && bare != key {
			continue
		}
		ok = true
		fmt.Fprintf(to, "key       %s\nvalue     %s\norigin    %s\n", s.Key, inText(s.Value), s.Origin)
		switch {
		case !gateway.ChangesOnReload(s.Key):
			fmt.Fprintln(to, "changes   with a restart: a reload rejects a file that changes it")
		case config.OfSettle(s.Key):
			fmt.Fprintln(to, "changes   with a restart of sluice-settle; the gateway does not use it")
		default:
			fmt.Fprintln(to, "changes   with a reload")
		}
		if gateway.CheckOverridable(s.Key) == nil {
			fmt.Fprintln(to, "override  for a while, with sluice override set")
		}
		if line := inReference(bare); line != "" {
			fmt.Fprintf(to, "reference %s\n", line)
		}
	}
	return ok
}

// inReference is the line of the reference that has a key, with its default and its meaning; "" = none.
func inReference(key string) string {
	table := ""
	for line := range strings.SplitSeq(sluice.Reference, "\n") {
		line = strings.TrimPrefix(line, "# ")
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(strings.TrimSpace(strings.SplitN(line, "#", 2)[0]), "[]") + "."
			continue
		}
		if name, _, ok := strings.Cut(line, " = "); ok && table+name == key {
			return line
		}
	}
	return ""
}
