package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"sluice/settle"
)

// sqlitePragmas make a commit durable, and let another process read meanwhile. A transaction begins with the write
// lock.
const sqlitePragmas = "_txlock=immediate&_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

func openSQLite(path string) (*sql.DB, dialect, error) {
	if path = strings.TrimPrefix(path, "//"); path == "" {
		return nil, dialect{}, errors.New("database: the path is missing; write sqlite:/var/lib/sluice/settle.db")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, dialect{}, err
	}
	file, err := newSQLiteFile(path)
	if err != nil {
		return nil, dialect{}, err
	}
	db := sql.OpenDB(file)
	db.SetMaxOpenConns(2) // there is one writer; a second one would wait for the lock
	return db, dialect{
		name: "sqlite", now: "CURRENT_TIMESTAMP",
		clock: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
		quote: `"`, insertion: "INSERT", ignored: " ON CONFLICT DO NOTHING",
		upsert: upsertSQLite, isData: isSQLiteData, file: file,
	}, nil
}

func upsertSQLite(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, take bool) (int64,
	error) {
	return comparing(ctx, tx, b, records, take, "", "ON CONFLICT (sku, born, serial) DO UPDATE SET "+
		"buyer = excluded.buyer, "+
		"quantity = excluded.quantity, status = excluded.status, epoch = excluded.epoch, ver = excluded.ver, "+
		"at = excluded.at, missing = NULL, taken = excluded.taken")
}

// Primary result codes of SQLite: https://sqlite.org/rescode.html
const (
	sqlitePerm       = 3
	sqliteReadOnly   = 8
	sqliteIO         = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCannotOpen = 14
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
	sqliteNoDatabase = 26
)

func isSQLiteData(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqliteTooBig || code == sqliteConstraint || code == sqliteMismatch
}
