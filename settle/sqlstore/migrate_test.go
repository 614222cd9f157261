package sqlstore_test

import (
	"path/filepath"
	"sync"
	"testing"

	"sluice/settle/sqlstore"
)

func TestMigrate_SeveralProcessesAtOnce(t *testing.T) {
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
