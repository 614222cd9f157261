package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestPassword_IsReadAgainAndStaysWhileItsFileCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	file, path := filepath.Join(dir, "config.toml"), filepath.Join(dir, "password")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "first\n")
	write(file, "upstream.targets = [\"http://127.0.0.1:9000\"]\nstock.source = \"redis\"\nstock.redis.password_file = "+
		"\"password\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n")
	c, err := Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // the path starts from the configuration's folder
	want := func(password, when string) {
		t.Helper()
		if got := string(c.Stock.Redis.PasswordNow()); got != password {
			t.Errorf("%s: password %q, want %q", when, got, password)
		}
	}
	want("first", "as it was")
	write(path, "second\r\n")
	want("second", "written anew")
	write(path, "")
	want("first", "empty")
	write(path, "two\nlines\n")
	want("first", "more than one line")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("first", "removed")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	want("first", "a pipe")
}
