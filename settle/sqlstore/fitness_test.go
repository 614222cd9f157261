package sqlstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/settle/sqlstore"
)

func TestStore_TellsWhatKeepsASettlerFromWorking(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		store := must(sqlstore.Open(sqlstore.Options{URL: url}))(t)
		defer store.Close()
		if err := store.CheckSchema(t.Context()); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("without tables: %v", err)
		}
		_ = must(store.Migrate(t.Context()))(t)
		if err := store.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
		if missing := store.CheckRights(t.Context()); len(missing) > 0 {
			t.Errorf("the owner lacks %q", missing)
		}
		if now, err := store.Clock(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
			t.Errorf("the clock of the database: %v, %v", now, err)
		}
		if strings.HasPrefix(url, "sqlite") {
			return
		}
		lacksRights(t, store, url)
	})
}

// lacksRights wants an account that may only read to hear what it may not do.
func lacksRights(t *testing.T, store *sqlstore.Store, url string) {
	grants := []string{"CREATE ROLE reader LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"}
	if strings.HasPrefix(url, "mysql") {
		database := url[strings.LastIndexByte(url, '/')+1:]
		grants = []string{"CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON " + database + ".* TO reader@'127.0.0.1'"}
	}
	for _, grant := range grants {
		if err := store.Exec(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
	}
	reader := must(sqlstore.Open(sqlstore.Options{URL: strings.Replace(url, "sluice@", "reader@", 1)}))(t)
	defer reader.Close()
	if err := reader.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	missing := strings.Join(reader.CheckRights(t.Context()), "\n")
	for _, what := range []string{"INSERT INTO sluice_order", "UPDATE sluice_cursor", "DELETE FROM sluice_stock"} {
		if !strings.Contains(missing, what) {
			t.Errorf("it lacks %q; want %q among them", missing, what)
		}
	}
}
