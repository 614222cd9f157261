package sqlstore

import "context"

// Exec runs a statement of a test.
func (s *Store) Exec(ctx context.Context, query string) error {
	_, err := s.db.ExecContext(ctx, query)
	return err
}

// OneConnection lets the store open no second connection.
func (s *Store) OneConnection() { s.db.SetMaxOpenConns(1) }
