package sqlstore

import (
	"context"
	"database/sql"
)

// Exec runs a statement of a test.
func (s *Store) Exec(ctx context.Context, query string) error {
	_, err := s.db.ExecContext(ctx, query)
	return err
}

// OneConnection lets the store open no second connection.
func (s *Store) OneConnection() { s.db.SetMaxOpenConns(1) }

// Texts returns the texts that a query of a test finds.
func (s *Store) Texts(ctx context.Context, query string) (all []string, err error) {
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, query)
	return all, err
}

// MigrateTo migrates to a version.
func (s *Store) MigrateTo(ctx context.Context, version int64) error {
	s.mayCreate()
	p, err := s.provider()
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return err
}
