package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

func TestCheck_TriesTheDatabaseOfTheSettler(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	wants := func(when string, words ...string) {
		t.Helper()
		out, _ := command(t, "check", "-c", file)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s: %q is missing in\n%s", when, word, out)
			}
		}
	}
	wants(
		"no file",
		"ok   settle    sqlite:settle.db is made by",
	)
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "settle.db")); err == nil {
		t.Error("the check has made the database")
	}
	if out, err := command(t, "migrate", "-c", file); err != nil {
		t.Fatal(out, err)
	}
	wants("tables", "ok   settle    sqlite:settle.db has the tables of this version")
	editConfig(t, file, "sqlite:settle.db", "sqlite:config.toml")
	wants("no database", "FAIL settle    sqlite:config.toml: reach the database: "+file+": file is not a database",
		"; mend the file, or correct [settle]")
	editConfig(t, file, "sqlite:config.toml", "sqlite:settle.db")
	const postgres = "postgres://u@127.0.0.1:1/shop"
	editConfig(t, file, "[[route]]", "orders_query = \"SELECT serial FROM nowhere WHERE sku = :sku\"\n[[route]]")
	editConfig(t, file, "sqlite:settle.db", postgres)
	wants(
		"no server",
		"FAIL settle    "+postgres+": reach the database",
		"orders go on, and their changes stay in Redis",
	)
	editConfig(t, file, postgres, "sqlite:settle.db")
	wants("no table of the shop", "FAIL settle    settle.orders_query: ", "nowhere")
}

func TestCheck_ConnectsToTheWebhookAndSendsNothing(t *testing.T) {
	file := settleConfig(t, redistest.Start(t).Addr)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "key"), []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	requests := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	editConfig(t, file, "[[route]]", fmt.Sprintf("[settle.webhook]\nurl = %q\nkey_file = \"key\"\n[[route]]",
		receiver.URL+"/changes"))
	out, _ := command(t, "check", "-c", file)
	for _, want := range []string{"ok   settle    the webhook at " + receiver.Listener.Addr().String() +
		" takes connections"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	receiver.Close() // it waits for requests
	if requests != 0 {
		t.Errorf("the check has sent %d requests", requests)
	}
	out, _ = command(t, "check", "-c", file)
	if want := "FAIL settle    the webhook cannot be reached; its changes stay in Redis"; !strings.Contains(out, want) {
		t.Errorf("%q is missing in\n%s", want, out)
	}
}
