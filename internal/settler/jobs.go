package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"sluice/config"
	"sluice/settle/jobs"
	"sluice/settle/sqlstore"
)

// jobsOf is what inserts the configured jobs; nil = none.
func jobsOf(j config.SettleJobs) (*sqlstore.Jobs, error) {
	if len(j.Kinds) == 0 {
		return nil, nil
	}
	return jobs.New(j.Kinds, j.Queue, slog.New(slog.DiscardHandler))
}

// MigrateAll is Migrate for every home, one after the other. What it has applied is named after the home, but for the
// main one.
func MigrateAll(ctx context.Context, c *config.Config) (applied []string, err error) {
	var faults []error
	for _, name := range c.Settle.HomeNames() {
		done, err := Migrate(ctx, c.AtHome(name))
		for _, what := range done {
			if name != config.MainHome {
				what += " in " + name
			}
			applied = append(applied, what)
		}
		if err != nil && len(c.Settle.Homes) > 0 {
			err = fmt.Errorf("home %s: %w", name, err)
		}
		faults = append(faults, err)
	}
	return applied, errors.Join(faults...)
}

// Migrate creates or changes the tables: those of Sluice, and River's where there are jobs. It returns the names of
// what it has applied.
func Migrate(ctx context.Context, c *config.Config) (applied []string, err error) {
	store, err := OpenStore(c)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if applied, err = store.Migrate(ctx); err != nil || len(c.Settle.Jobs.Kinds) == 0 {
		return applied, err
	}
	pool, err := jobs.Open(c.Settle.URL, string(c.Settle.Password))
	if err != nil {
		return applied, err
	}
	defer pool.Close()
	more, err := jobs.Migrate(ctx, pool)
	return append(applied, more...), err
}

// Statements is the SQL by which Migrate makes the tables in an empty database.
func Statements(c *config.Config) (string, error) {
	store, err := OpenStore(c)
	if err != nil {
		return "", err
	}
	defer store.Close()
	text, err := store.Statements()
	if err != nil || len(c.Settle.Jobs.Kinds) == 0 {
		return text, err
	}
	more, err := jobs.Statements()
	return text + more, err
}

// checkJobs reports an error where the tables of the jobs are not those of this version.
func checkJobs(ctx context.Context, c *config.Config) error {
	if len(c.Settle.Jobs.Kinds) == 0 {
		return nil
	}
	pool, err := jobs.Open(c.Settle.URL, string(c.Settle.Password))
	if err != nil {
		return err
	}
	defer pool.Close()
	return jobs.Check(ctx, pool)
}
