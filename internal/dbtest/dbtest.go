// Package dbtest runs a real PostgreSQL or MariaDB for tests.
//
// Each server has a folder and a loopback port of its own, makes every commit durable, and ends with the test, or with
// the tests of the process where these share it.
package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // by the name mysql
	_ "github.com/jackc/pgx/v5/stdlib" // by the name pgx

	"sluice/internal/testkit"
)

// startup is how long a server on a busy machine may take until it accepts connections.
const startup = 90 * time.Second

// Server is one database server.
type Server struct {
	URL string // of an empty database

	t       testing.TB
	account string // the server does not run as root
	command []string
	address string
	process *exec.Cmd
}

// Postgres runs PostgreSQL until the test ends. It is for .ci/run and make nightly: the fast tests use SQLite, so that
// they are the same on every machine. Without the program the test is skipped, or fails in CI (CI=true).
func Postgres(t testing.TB) *Server {
	t.Helper()
	bin := newest("/usr/lib/postgresql/*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/bin", "/usr/bin")
	initdb, server := filepath.Join(bin, "initdb"), filepath.Join(bin, "postgres")
	need(t, initdb, server)
	s := &Server{t: t, account: "postgres", address: testkit.FreeAddress(t)}
	dir := s.folder()
	s.once(initdb, "-D", dir, "-U", "sluice", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	host, port, _ := net.SplitHostPort(s.address)
	s.command = []string{server, "-D", dir, "-h", host, "-p", port, "-k", "", "-c", "shared_buffers=32MB", "-c", "jit=off"}
	s.URL = "postgres://sluice@" + s.address + "/postgres?sslmode=disable"
	s.run()
	return s
}

// PgBouncer runs PgBouncer before a PostgreSQL until the test ends: each transaction gets any of two connections. See
// Postgres.
func PgBouncer(t testing.TB, postgres *Server) *Server {
	t.Helper()
	program, _ := exec.LookPath("pgbouncer")
	if program == "" {
		program = "/usr/sbin/pgbouncer"
	}
	need(t, program)
	s := &Server{t: t, account: "postgres", address: testkit.FreeAddress(t)}
	host, port, _ := net.SplitHostPort(s.address)
	toHost, toPort, _ := net.SplitHostPort(postgres.address)
	file := filepath.Join(s.folder(), "pgbouncer.ini")
	text := "[databases]\npostgres = host=" + toHost + " port=" + toPort + " user=sluice\n[pgbouncer]\nlisten_addr = " +
		host + "\nlisten_port = " + port + "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n" +
		"default_pool_size = 2\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.command = []string{program, file}
	s.URL = "postgres://sluice@" + s.address + "/postgres?sslmode=disable"
	s.run()
	return s
}

// MariaDB runs MariaDB until the test ends, or MySQL where SLUICE_MYSQLD names its server program. See Postgres.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, account: "mysql", address: testkit.FreeAddress(t)}
	server, dir := os.Getenv("SLUICE_MYSQLD"), s.folder()
	temporary := "--tmpdir=" + s.folder() // a server that starts removes the temporary tables of all others in /tmp
	if server != "" {
		need(t, server)
		s.once(server, "--no-defaults", "--initialize-insecure", "--datadir="+dir, temporary)
	} else {
		install, _ := exec.LookPath("mariadb-install-db")
		if server, _ = exec.LookPath("mariadbd"); server == "" {
			server = "/usr/sbin/mariadbd"
		}
		need(t, install, server)
		s.once(install, "--no-defaults", "--datadir="+dir, temporary, "--auth-root-authentication-method=normal",
			"--skip-test-db")
	}
	host, port, _ := net.SplitHostPort(s.address)
	script := filepath.Join(filepath.Dir(dir), "init.sql")
	text := "CREATE USER sluice@'127.0.0.1';\nGRANT ALL ON *.* TO sluice@'127.0.0.1' WITH GRANT OPTION;\n" +
		"CREATE DATABASE sluice;\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.command = []string{server, "--no-defaults", "--datadir=" + dir, temporary, "--bind-address=" + host,
		"--port=" + port, "--socket=" + filepath.Join(dir, "sock"), "--pid-file=" + filepath.Join(dir, "pid"),
		"--skip-name-resolve", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=32M",
		"--secure-file-priv=" + dir}
	s.URL = "mysql://sluice@" + s.address + "/sluice"
	s.command = append(s.command, "--init-file="+script)
	s.run()
	s.command = s.command[:len(s.command)-1]
	return s
}

// newest is the last folder, by name, of the first pattern that has the program.
func newest(patterns ...string) string {
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, "initdb"))
		if slices.Sort(found); len(found) > 0 {
			return filepath.Dir(found[len(found)-1])
		}
	}
	return ""
}

func need(t testing.TB, programs ...string) {
	t.Helper()
	if os.Getenv("CI") == "" && os.Getenv("SLUICE_NIGHTLY") == "" {
		t.Skip(".ci/run and make nightly run it: it needs a database server (CI=true runs it here)")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and in CI it must be", filepath.Base(p))
		}
		t.Skipf("%s is not installed", filepath.Base(p))
	}
}

// folder makes a folder for the server's data, which belongs to its account.
func (s *Server) folder() string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if c := s.credential(); c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			s.t.Fatal(err)
		}
		for parent := filepath.Dir(dir); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
			_ = os.Chmod(parent, 0o755) // else the account does not reach it
		}
	}
	return dir
}

// credential is the account of the server's package where the test runs as root; nil = that of the test.
func (s *Server) credential() *syscall.Credential {
	account, err := user.Lookup(s.account)
	if os.Getuid() != 0 || err != nil {
		return nil
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) prepare(args []string) (*exec.Cmd, *bytes.Buffer) {
	said := new(bytes.Buffer)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential()}
	return cmd, said
}

func (s *Server) once(args ...string) {
	s.t.Helper()
	cmd, said := s.prepare(args)
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s", args[0], err, said)
	}
}

// run starts the server and waits until it accepts connections.
func (s *Server) run() {
	s.t.Helper()
	cmd, said := s.prepare(s.command)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process = cmd
	s.t.Cleanup(s.Kill)
	for begin := time.Now(); time.Since(begin) < startup; time.Sleep(100 * time.Millisecond) {
		if s.answers() {
			return
		}
	}
	s.Kill()
	s.t.Fatalf("%s does not start: %s", s.command[0], said)
}

// answers reports whether the server accepts a user.
func (s *Server) answers() bool {
	db := s.open(s.t)
	defer db.Close()
	return db.PingContext(context.Background()) == nil
}

func (s *Server) open(t testing.TB) *sql.DB {
	t.Helper()
	driver, source := "pgx", s.URL
	if name, ok := strings.CutPrefix(s.URL, "mysql://sluice@"+s.address+"/"); ok {
		driver, source = "mysql", "sluice@tcp("+s.address+")/"+name
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Kill ends the server as a power failure would. A second call does nothing.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// Restart begins the server again after Kill, with its data.
func (s *Server) Restart() {
	s.t.Helper()
	s.run()
}
