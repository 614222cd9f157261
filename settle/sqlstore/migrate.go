package sqlstore

import (
	"context"
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

func (s *Store) provider() (*goose.Provider, error) {
	dialects := map[string]database.Dialect{
		"postgres": database.DialectPostgres, "mysql": database.DialectMySQL, "sqlite": database.DialectSQLite3,
	}
	files, err := fs.Sub(migrations, "migrations/"+s.d.name)
	if err != nil {
		return nil, err
	}
	versions, err := database.NewStore(dialects[s.d.name], versionTable)
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
// several processes: a settler of SQLite migrates by itself.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
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

// Statements is the SQL by which Migrate makes the tables in an empty database, for an operator who runs it by hand.
func (s *Store) Statements() (string, error) {
	files, err := fs.Glob(migrations, "migrations/"+s.d.name+"/*.sql")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range files {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return "", err
		}
		out.Write(text)
	}
	return out.String(), nil
}
