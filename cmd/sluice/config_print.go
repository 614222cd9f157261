package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice"
	"sluice/admin"
	"sluice/config"
)

type configCommand struct {
	Print configPrint `cmd:"" help:"Print every key with its value; secrets are not shown."`
}

type configPrint struct {
	File      string `arg:"" optional:"" default:"config.toml" help:"The configuration file."`
	Origin    bool   `help:"Say where each value is from."`
	Changed   bool   `help:"Only what is not the default."`
	Admin     string `help:"Instead of a file: what is in force in the gate at this admin address." placeholder:"http://127.0.0.1:8090"`
	TokenFile string `help:"The token for --admin." type:"existingfile" placeholder:"FILE"`
}

func (p *configPrint) Run() error {
	var all []admin.Setting
	if p.Admin != "" {
		var told admin.Settings
		if err := (&runningGate{Admin: p.Admin, TokenFile: p.TokenFile}).ask("GET", "/config", nil, &told); err != nil {
			return err
		}
		all = told.Settings
	} else {
		c, err := config.Load(p.File, os.LookupEnv, compiles)
		if err != nil {
			return err
		}
		for _, s := range c.Settings() {
			all = append(all, admin.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin})
		}
	}
	printSettings(os.Stdout, all, p.Origin, p.Changed)
	return nil
}

func printSettings(to io.Writer, all []admin.Setting, origin, changed bool) {
	for _, s := range all {
		if changed && s.Origin == "default" {
			continue
		}
		line := s.Key + " = " + inText(s.Value)
		if origin {
			line = fmt.Sprintf("%-60s # %s", line, s.Origin)
		}
		fmt.Fprintln(to, line)
	}
}

// inText is a value as a file would have it; JSON's text, numbers, booleans and lists are TOML's.
func inText(v any) string {
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
		if s.Key != key && bare(s.Key) != key {
			continue
		}
		ok = true
		fmt.Fprintf(to, "key       %s\nvalue     %s\norigin    %s\n", s.Key, inText(s.Value), s.Origin)
		if isLive(s.Key) {
			fmt.Fprintln(to, "changes   with a reload")
		} else {
			fmt.Fprintln(to, "changes   with a restart")
		}
		if checkOverridable(s.Key) == nil {
			fmt.Fprintln(to, "override  for a while, with sluice override set")
		}
		if line := inReference(bare(s.Key)); line != "" {
			fmt.Fprintf(to, "reference %s\n", line)
		}
	}
	return ok
}

// bare is a key without the [index] of repeated tables.
func bare(key string) string {
	for {
		i := strings.IndexByte(key, '[')
		j := strings.IndexByte(key, ']')
		if i < 0 || j < i {
			return key
		}
		key = key[:i] + key[j+1:]
	}
}

// inReference is the line of the reference that has a key, with its default and its meaning; "" = none.
func inReference(key string) string {
	table := ""
	for _, line := range strings.Split(sluice.Reference, "\n") {
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
