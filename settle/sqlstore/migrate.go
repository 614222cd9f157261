package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed migrations
var migrations embed.FS

const versionTable = "sluice_migration"

// versions is goose's table of what was applied.
func (s *Store) versions() (database.Store, error) {
	dialects := map[string]database.Dialect{
		"postgres": database.DialectPostgres, "mysql": database.DialectMySQL, "sqlite": database.DialectSQLite3,
	}
	return database.NewStore(dialects[s.d.name], versionTable)
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+s.d.name)
	if err != nil {
		return nil, err
	}
	versions, err := s.versions()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider("", s.db, files, goose.WithStore(versions))
}

// While another process migrates the same database, a file may turn out to be applied already.
const (
	migrateTries = 10
	migratePause = 50 * time.Millisecond
)

// Migrate creates or changes Sluice's tables, and returns the names of the files that it has applied. It may run in
// several processes: a settler of SQLite migrates by itself. It alone makes a file that is not there.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	s.mayCreate()
	p, err := s.provider()
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	for try := 1; ; try++ {
		results, err := p.Up(ctx)
		if partial := (*goose.PartialError)(nil); errors.As(err, &partial) {
			results = partial.Applied
		}
		for _, r := range results {
			applied = append(applied, r.Source.Path)
		}
		switch {
		case err == nil:
			return applied, nil
		case try == migrateTries || ctx.Err() != nil:
			return applied, fmt.Errorf("migrate: %w", err)
		}
		time.Sleep(migratePause)
	}
}

func (s *Store) mayCreate() {
	if s.d.file != nil {
		s.d.file.create.Store(true)
	}
}

// Statements is the SQL by which Migrate would change the database, for an operator who runs it by hand: it notes the
// versions, so that Migrate knows them then. "" = Migrate has nothing to do. With empty it is that of a database
// without any table, and the database is not asked. It changes nothing.
func (s *Store) Statements(ctx context.Context, empty bool) (string, error) {
	p, err := s.provider()
	if err != nil {
		return "", err
	}
	versions, err := s.versions()
	if err != nil {
		return "", err
	}
	applied, exists := make(map[int64]bool), false
	if !empty {
		if applied, exists, err = s.applied(ctx, versions); err != nil {
			return "", fmt.Errorf("read %s: %w", versionTable, err)
		}
	}
	var out strings.Builder
	note := func(version int64) {
		fmt.Fprintf(&out, "INSERT INTO %s (version_id, is_applied) VALUES (%d, true);\n", versionTable, version)
	}
	if !exists {
		if err := versions.CreateVersionTable(ctx, printer{to: &out}); err != nil {
			return "", err
		}
		note(0)
	}
	for _, source := range p.ListSources() {
		if applied[source.Version] {
			continue
		}
		text, err := fs.ReadFile(migrations, "migrations/"+s.d.name+"/"+source.Path)
		if err != nil {
			return "", err
		}
		out.Write(text)
		note(source.Version)
	}
	return out.String(), nil
}

// applied are the versions that were applied; exists is false where there is no table of them.
func (s *Store) applied(ctx context.Context, versions database.Store) (applied map[int64]bool, exists bool, err error) {
	if asked, ok := versions.(database.StoreExtender); ok && s.d.name != "sqlite" {
		exists, err = asked.TableExists(ctx, s.db)
	} else { // goose does not know it of SQLite
		err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) > 0 FROM sqlite_master WHERE name = ?", versionTable).Scan(&exists)
	}
	if errors.Is(err, ErrSchema) { // there is no file yet
		return nil, false, nil
	}
	if err != nil || !exists {
		return nil, false, err
	}
	all, err := versions.ListMigrations(ctx, s.db)
	applied = make(map[int64]bool, len(all))
	for _, m := range all {
		applied[m.Version] = applied[m.Version] || m.IsApplied
	}
	return applied, true, err
}

// printer writes the statements that a goose store executes.
type printer struct {
	database.DBTxConn
	to *strings.Builder
}

// ExecContext implements database.DBTxConn.
func (p printer) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	p.to.WriteString(strings.TrimSpace(query) + ";\n")
	return driver.ResultNoRows, nil
}
