package settler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"sluice/config"
	"sluice/settle/sqlstore"
)

// jobsOf is what inserts the configured jobs; nil = none.
func jobsOf(j config.SettleJobs) (*sqlstore.Jobs, error) {
	if len(j.Kinds) == 0 {
		return nil, nil
	}
	return newJobs(j.Kinds, jobQueue, slog.New(slog.DiscardHandler))
}

// MigrateAll is migrate for every home, one after the other. What it has applied is named after the home, but for the
// main one.
func MigrateAll(ctx context.Context, c *config.Config) (applied []string, err error) {
	var faults []error
	for _, name := range c.Settle.HomeNames() {
		done, err := migrate(ctx, c.AtHome(name))
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

// migrate creates or changes the tables: those of Sluice, and River's where there are jobs. It returns the names of
// what it has applied.
func migrate(ctx context.Context, c *config.Config) (applied []string, err error) {
	store, err := openDatabase(c)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if applied, err = store.Migrate(ctx); err != nil || len(c.Settle.Jobs.Kinds) == 0 {
		return applied, err
	}
	pool, err := openJobs(c.Settle.URL, string(c.Settle.Password))
	if err != nil {
		return applied, err
	}
	defer pool.Close()
	more, err := migrateJobs(ctx, pool)
	return append(applied, more...), err
}

// Statements writes the SQL by which MigrateAll would change the databases, after a comment that names the home. For a
// database that cannot be reached it is that of an empty one, and unreached says why. It changes nothing.
func Statements(ctx context.Context, c *config.Config, out io.Writer) (unreached, err error) {
	for _, name := range c.Settle.HomeNames() {
		text, away, err := statements(ctx, c.AtHome(name))
		if away != nil {
			unreached = errors.Join(unreached, fmt.Errorf("home %s: %w", name, away))
		}
		if err == nil {
			if text == "" {
				text = "-- the tables are those of this version\n"
			}
			_, err = fmt.Fprintf(out, "-- home %s\n%s", name, text)
		}
		if err != nil {
			return unreached, err
		}
	}
	return unreached, nil
}

func statements(ctx context.Context, c *config.Config) (text string, unreached, err error) {
	store, err := openDatabase(c)
	if err != nil {
		return "", nil, err
	}
	defer store.Close()
	empty := !fileExists(c)
	if !empty {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		unreached = store.Ping(within)
		cancel()
	}
	text, err = store.Statements(ctx, empty || unreached != nil)
	if err != nil || len(c.Settle.Jobs.Kinds) == 0 {
		return text, unreached, err
	}
	if unreached != nil {
		more, err := jobStatements(ctx, nil)
		return text + more, unreached, err
	}
	pool, err := openJobs(c.Settle.URL, string(c.Settle.Password))
	if err != nil {
		return "", nil, err
	}
	defer pool.Close()
	more, err := jobStatements(ctx, pool)
	return text + more, nil, err
}

// fileExists is false where the database is a file that is not there: to ask it would make it.
func fileExists(c *config.Config) bool {
	path, ok := strings.CutPrefix(c.Settle.URL, "sqlite:")
	if !ok {
		return true
	}
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkJobs reports an error where the tables of the jobs are not those of this version.
func checkJobs(ctx context.Context, c *config.Config) error {
	if len(c.Settle.Jobs.Kinds) == 0 {
		return nil
	}
	pool, err := openJobs(c.Settle.URL, string(c.Settle.Password))
	if err != nil {
		return err
	}
	defer pool.Close()
	return checkJobTables(ctx, pool)
}
