package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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

// The answer of the gateway names the mistakes of the file, which is not told a second time.
func TestReload_MistakesAreToldOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("admin.listen = \"127.0.0.1:8090\"\nnothing = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(told bool) string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.Stderr
		os.Stderr = w
		_, err = (&target{Config: file, fileTold: told}).brokenFile(errors.New("unknown key"))
		os.Stderr = stderr
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := said(true); strings.Contains(text, "unknown key") ||
		!strings.Contains(text, "Asking it at 127.0.0.1:8090") {
		t.Error(text)
	}
	if text := said(false); !strings.HasPrefix(text, "unknown key\n") {
		t.Error(text)
	}
}
