package sqlstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/settle/sqlstore"
)

func TestMigrate_SeveralProcessesAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		url := "sqlite:" + filepath.Join(t.TempDir(), "settle.db")
		var migrating sync.WaitGroup
		for range 4 {
			store := must(sqlstore.Open(sqlstore.Options{URL: url}))(t)
			defer store.Close()
			migrating.Go(func() {
				if _, err := store.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		migrating.Wait()
		store := must(sqlstore.Open(sqlstore.Options{URL: url}))(t)
		defer store.Close()
		if err := store.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// An operator runs the printed SQL by hand, in a database without tables, and in one with those of an earlier version.
func TestStatements_RunByHandAreKnownToMigrate(t *testing.T) {
	for name, before := range map[string]int64{"no tables": 0, "earlier tables": 3} {
		t.Run(name, func(t *testing.T) {
			everyDatabase(t, func(t *testing.T, url string) {
				store := must(sqlstore.Open(sqlstore.Options{URL: url}))(t)
				defer store.Close()
				if before > 0 {
					if err := store.MigrateTo(t.Context(), before); err != nil {
						t.Fatal(err)
					}
				}
				printed := must(store.Statements(t.Context(), false))(t)
				if strings.Contains(printed, "CREATE TABLE sluice_order") != (before == 0) {
					t.Errorf("with version %d: %s", before, printed)
				}
				if all := must(store.Statements(t.Context(), true))(t); before == 0 && all != printed {
					t.Errorf("%s\nand for an empty database:\n%s", printed, all)
				}
				if path, ok := strings.CutPrefix(url, "sqlite:"); ok && before == 0 { // as sqlite3 does
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for statement := range strings.SplitSeq(strings.TrimSpace(printed), ";\n") {
					if err := store.Exec(t.Context(), statement); err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
				if applied, err := store.Migrate(t.Context()); err != nil || len(applied) != 0 {
					t.Errorf("%q, %v: want nothing to do", applied, err)
				}
				if err := store.CheckSchema(t.Context()); err != nil {
					t.Error(err)
				}
				if printed, err := store.Statements(t.Context(), false); err != nil || printed != "" {
					t.Errorf("%v: %s: want nothing to do", err, printed)
				}
			})
		})
	}
}
