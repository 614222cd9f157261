package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/config"
)

// otherNames are names that flags have in other programs, each with those that sluice's commands have for the same.
var otherNames = map[string][]string{
	"f": {"config"}, "file": {"config"}, "cfg": {"config"},
	"data": {"body"}, "data-raw": {"body"},
	"id": {"request-id"}, "uid": {"user"},
	"addr": {"admin"}, "address": {"admin", "ip"}, "host": {"admin"}, "url": {"admin", "to"},
	"listen": {"from"}, "upstream": {"to"}, "target": {"to"},
	"duration": {"for"}, "follow": {"watch"},
}

// nearFlag is the flag of cmd that name could mean: one with the same meaning or a similar name; "" = none.
func nearFlag(cmd *cobra.Command, name string) string {
	for _, other := range otherNames[name] {
		if cmd.Flags().Lookup(other) != nil {
			return "--" + other
		}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := config.Nearest(name, names); near != "" && len(name) > 1 {
		return "--" + near
	}
	return ""
}

// nearArgument is the flag with which cmd takes an argument that it has no place for; "" = none.
func nearArgument(cmd *cobra.Command, arg string) string {
	if strings.HasSuffix(arg, ".toml") && cmd.Flags().Lookup("config") != nil {
		return "--config " + arg
	}
	if cmd.Flags().Lookup(arg) != nil {
		return "--" + arg
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && cmd.Flags().Lookup("config") != nil {
		return "--config " + arg
	}
	return ""
}

// nearKey is the key of the configuration that is most like key; "" = none is.
func nearKey(c *config.Config, key string) string {
	var keys []string
	for _, s := range c.Settings() {
		keys = append(keys, bare(s.Key))
	}
	return config.Nearest(key, keys)
}

// meant is the question behind a message; "" for an empty suggestion.
func meant(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return ", did you mean " + suggestion + "?"
}
