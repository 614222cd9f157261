package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"sluice/settle/sqlstore"
)

// openJobs connects to the PostgreSQL of the jobs when it is first used. The caller must Close the pool.
func openJobs(url, password string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("database: the PostgreSQL URL cannot be read; write postgres://user@host:5432/name")
	}
	if password != "" {
		c.ConnConfig.Password = password
	}
	sqlstore.PrepareNothing(url, c.ConnConfig)
	return pgxpool.NewWithConfig(context.Background(), c) // it opens no connection yet
}

func jobMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
}

// migrateJobs creates or changes River's tables, and returns the names of the migrations that it has applied.
func migrateJobs(ctx context.Context, pool *pgxpool.Pool) (applied []string, err error) {
	m, err := jobMigrator(pool)
	if err != nil {
		return nil, fmt.Errorf("migrate the jobs: %w", err)
	}
	done, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, fmt.Errorf("migrate the jobs: %w", err)
	}
	for _, v := range done.Versions {
		applied = append(applied, fmt.Sprintf("river %03d %s", v.Version, v.Name))
	}
	return applied, nil
}

// jobStates are the states of jobs that waitingJobs counts, each with 0.
func jobStates() map[string]int64 {
	return map[string]int64{"available": 0, "discarded": 0, "retryable": 0, "running": 0, "scheduled": 0}
}

// waitingJobs is how many jobs of a queue are in each state but completed and cancelled, and for how long the oldest
// one that may be worked has waited; 0 = there is none.
func waitingJobs(ctx context.Context, pool *pgxpool.Pool, queue string) (states map[string]int64, oldest time.Duration,
	err error) {
	states = jobStates()
	rows, err := pool.Query(ctx, "SELECT state::text, count(*), "+
		"COALESCE(extract(epoch FROM now() - min(scheduled_at)), 0)::float8 FROM river_job WHERE queue = $1 "+
		"AND state IN ('available', 'discarded', 'retryable', 'running', 'scheduled') GROUP BY state", queue)
	if err != nil {
		return nil, 0, fmt.Errorf("count jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var n int64
		var age float64
		if err := rows.Scan(&state, &n, &age); err != nil {
			return nil, 0, fmt.Errorf("count jobs: %w", err)
		}
		if states[state] = n; state == "available" {
			oldest = max(time.Duration(age*float64(time.Second)), 0)
		}
	}
	return states, oldest, rows.Err()
}

// checkJobTables reports an error where River's tables are not those of this version.
func checkJobTables(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := jobMigrator(pool)
	if err != nil {
		return err
	}
	found, err := m.Validate(ctx, nil)
	if err == nil && !found.OK {
		err = fmt.Errorf("the tables of the jobs are missing, or those of another version; run: sluice-settle migrate (%s)",
			strings.Join(found.Messages, "; "))
	}
	return err
}

// jobStatements is the SQL by which migrateJobs would change River's tables, for an operator who runs it by hand; "" =
// there is nothing to do. pool nil = all of it, for an empty database. Its last statement notes the versions, so that
// migrateJobs and checkJobTables know them.
func jobStatements(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	m, err := jobMigrator(pool)
	if err != nil {
		return "", err
	}
	applied := make(map[int]bool)
	if pool != nil {
		existing, err := m.ExistingVersions(ctx)
		if err != nil {
			return "", fmt.Errorf("read the versions of the jobs' tables: %w", err)
		}
		for _, v := range existing {
			applied[v.Version] = true
		}
	}
	all := m.AllVersions()
	slices.SortStableFunc(all, func(a, b rivermigrate.Migration) int { return a.Version - b.Version })
	var out strings.Builder
	var versions []string
	for _, v := range all {
		if applied[v.Version] {
			continue
		}
		fmt.Fprintf(&out, "-- River %03d: %s\n%s\n", v.Version, v.Name,
			strings.TrimSpace(strings.ReplaceAll(v.SQLUp, "/* TEMPLATE: schema */", "")))
		versions = append(versions, fmt.Sprintf("('main', %d)", v.Version))
	}
	if len(versions) > 0 {
		fmt.Fprintf(&out, "INSERT INTO river_migration (line, version) VALUES %s ON CONFLICT DO NOTHING;\n",
			strings.Join(versions, ", "))
	}
	return out.String(), nil
}
