package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
)

// sqliteFile opens connections to a file of SQLite. All of them are to the file that the first one has opened: where
// the path leads to another one, or to none, each use of a connection fails. SQLite itself would write on into a file
// that no one can open any more, and its log would destroy the one that has come in its place.
type sqliteFile struct {
	driver.Connector // of a file that is there

	path   string
	create atomic.Bool // a file that is not there is made: Migrate sets it

	mu     sync.Mutex
	opened fs.FileInfo // nil = it was not opened yet
}

func newSQLiteFile(path string) (*sqliteFile, error) {
	f := &sqliteFile{path: path}
	var err error
	f.Connector, err = f.connector("rw")
	return f, err
}

func (f *sqliteFile) connector(mode string) (driver.Connector, error) {
	return sqlite.NewConnector("file:" + (&url.URL{Path: f.path}).EscapedPath() + "?mode=" + mode + "&" + sqlitePragmas)
}

// Connect implements driver.Connector.
func (f *sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.check(false); err != nil {
		return nil, err
	}
	to, creates := f.Connector, f.create.Load()
	if creates {
		var err error
		if to, err = f.connector("rwc"); err != nil {
			return nil, err
		}
	}
	opened, err := to.Connect(ctx)
	if err != nil {
		return nil, f.explain(err)
	}
	conn := sqliteConn{opened.(sqliteDriverConn), f}
	if err = f.check(true); err == nil && creates {
		var reads bool
		if reads, err = conn.IsReadOnly("main"); err == nil && reads {
			err = fmt.Errorf("%s can only be read%s", f.path, f.unwritable())
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// check is an error unless the path leads to the file that was opened, or may be opened. With opened it was right now.
func (f *sqliteFile) check(opened bool) error {
	info, err := os.Stat(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return err
	case f.opened == nil && gone && !f.create.Load():
		return absentError(f.path)
	case f.opened == nil && opened && !gone:
		f.opened = info
	case f.opened != nil && (gone || !os.SameFile(info, f.opened)):
		return fmt.Errorf("the file %s was replaced or deleted while it was open: stop the settlers, remove %[1]s-wal and "+
			"%[1]s-shm, and start them again", f.path)
	}
	return nil
}

// absentError is ErrSchema of a path at which no file is.
type absentError string

func (e absentError) Error() string        { return string(e) + " does not exist; sluice-settle run makes it" }
func (e absentError) Is(target error) bool { return target == ErrSchema }

// explain adds to an error of the file which one it is, and what keeps it from being written. It does not open the
// file: to close it would end the locks that SQLite has.
func (f *sqliteFile) explain(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || strings.Contains(err.Error(), f.path) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlitePerm, sqliteReadOnly, sqliteIO, sqliteCorrupt, sqliteFull, sqliteCannotOpen, sqliteNoDatabase:
		return fmt.Errorf("%s: %w%s", f.path, err, f.unwritable())
	}
	return err
}

// unwritable says why the file, or the folder in which SQLite keeps its log, cannot be written; "" = they can be.
func (f *sqliteFile) unwritable() string {
	for _, name := range []string{f.path, filepath.Dir(f.path)} {
		err := unix.Access(name, unix.W_OK)
		if err != nil && (name != f.path || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Sprintf("; cannot write to %s: %v", name, err)
		}
	}
	return ""
}

// sqliteDriverConn is what the driver's connections can do.
type sqliteDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
	IsReadOnly(schema string) (bool, error)
}

// sqliteConn is a connection that is used only while its file is at the path.
type sqliteConn struct {
	sqliteDriverConn

	file *sqliteFile
}

// ResetSession implements driver.SessionResetter: it is called before each use. The pool heeds no other error, and
// tells that of the new connection, which it then asks for.
func (c sqliteConn) ResetSession(ctx context.Context) error {
	if c.file.check(false) != nil {
		return driver.ErrBadConn
	}
	return c.sqliteDriverConn.ResetSession(ctx)
}
