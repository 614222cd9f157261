package sqlstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/settle/sqlstore"
)

// An operator deletes the file under a settler, or puts a copy in its place. Nothing is written into either file then,
// and the copy is whole.
func TestStore_FileThatWasReplacedOrDeletedIsAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"deleted", "replaced"} {
		t.Run(how, func(t *testing.T) {
			path, kept := filepath.Join(t.TempDir(), "settle.db"), filepath.Join(t.TempDir(), "copy.db")
			s := newSite(t, redistest.Start(t), "sqlite:"+path, sqlstore.Stock{})
			const sku = "1001"
			s.ledger.set(sku, 50)
			s.ledger.buy(sku, 0, 3)
			s.drain(sku)
			s.exec("VACUUM INTO '" + kept + "'")
			s.ledger.buy(sku, 3, 3)
			s.drain(sku)
			var err error
			if how == "deleted" {
				err = os.Remove(path)
			} else {
				err = os.Rename(kept, path)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.ledger.buy(sku, 6, 3)
			want := "the file " + path + " was replaced or deleted while it was open: stop the settlers, remove " + path +
				"-wal and " + path + "-shm, and start them again"
			_, waiting := s.store.Waiting(t.Context())
			_, migrating := s.store.Migrate(t.Context())
			for _, err := range []error{s.store.Ping(t.Context()), waiting, s.settler.Drain(t.Context(), sku), migrating} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
			if _, err := os.Stat(path); how == "deleted" {
				if err == nil {
					t.Error("the file was made again")
				}
				return
			}
			s.store.Close()
			if err := errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")); err != nil {
				t.Fatal(err)
			}
			again := must(sqlstore.Open(sqlstore.Options{URL: s.url}))(t)
			defer again.Close()
			if got := must(again.Texts(t.Context(), "PRAGMA integrity_check"))(t); len(got) != 1 || got[0] != "ok" {
				t.Errorf("the copy: %q", got)
			}
			if c, _, err := again.Cursor(t.Context(), sku); err != nil || c.Sold != 3 {
				t.Errorf("the copy has %d units: %v", c.Sold, err)
			}
		})
	}
}

// Each error of the file says which one it is, and what the system says about it.
func TestStore_ErrorsOfTheFileNameIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	foreign := filepath.Join(folder, "config.toml")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(folder, "nowhere")
	for path, want := range map[string]string{
		foreign:                             foreign + ": file is not a database",
		filepath.Join(foreign, "settle.db"): foreign + "/settle.db: not a directory",
		filepath.Join(nowhere, "settle.db"): nowhere + "/settle.db: unable to open database file (14); cannot write to " +
			nowhere + ": no such file or directory",
	} {
		store := must(sqlstore.Open(sqlstore.Options{URL: "sqlite:" + path}))(t)
		defer store.Close()
		if _, err := store.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
