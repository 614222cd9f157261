package stores_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/config"
	"sluice/gateway/stores"
)

// A journal that cannot be kept is a fault of server.state_dir, and not of Redis.
func TestOpenLedger_NamesTheKeyOfAJournalThatCannotBeKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Name, c.Server.StateDir = "shop", dir
	_, err := stores.OpenLedger(c, false, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "server.state_dir") || !strings.Contains(err.Error(), "must own") {
		t.Errorf("%v", err)
	}
}
