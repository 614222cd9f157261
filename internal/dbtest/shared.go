package dbtest

import (
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared is a server on which tests of the process have databases, and how many there were.
type shared struct {
	once      func(testing.TB) *Server
	mu        sync.Mutex
	server    *Server
	databases int
	ends      []func() // what the server leaves
}

var postgres, mariaDB = &shared{once: Postgres}, &shared{once: MariaDB}

// InPostgres is the URL of an empty database in a PostgreSQL that the tests of the process share. It is for tests that
// leave the server itself alone; TestMain ends it by Main. See Postgres.
func InPostgres(t testing.TB) string { return postgres.database(t) }

// InMariaDB is InPostgres for MariaDB.
func InMariaDB(t testing.TB) string { return mariaDB.database(t) }

func (s *shared) database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		s.server = s.once(process{t, s})
	}
	db := s.server.open(t)
	defer db.Close()
	s.databases++
	name := fmt.Sprintf("test%d", s.databases)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// process stands for the test that has started a server which outlives it.
type process struct {
	testing.TB
	of *shared
}

func (p process) Cleanup(end func()) { p.of.ends = append(p.of.ends, end) }

func (p process) TempDir() string {
	dir, err := os.MkdirTemp("", "dbtest")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Main runs the tests of m, and ends the servers that they have shared.
func Main(m goleak.TestingM) goleak.TestingM { return sharing{m} }

type sharing struct{ tests goleak.TestingM }

func (m sharing) Run() int {
	code := m.tests.Run()
	for _, s := range []*shared{postgres, mariaDB} {
		for i := len(s.ends) - 1; i >= 0; i-- {
			s.ends[i]()
		}
	}
	return code
}
