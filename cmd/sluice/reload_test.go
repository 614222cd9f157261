package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice/admin"
)

func TestReload_PrintsWarnings(t *testing.T) {
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	printReload(cmd, &admin.Reloaded{Config: "abc", Warnings: []string{"route order sells from the ledger now"}})
	if want := "reloaded: abc runs\nwarn      route order sells from the ledger now\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
