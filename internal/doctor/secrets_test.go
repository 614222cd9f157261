package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/config"
)

func TestCheck_WarnsOfSecretsThatOthersMayRead(t *testing.T) {
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"token": 0o644, "password": 0o640, "secret": 0o600} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("0123456789abcdef0123456789abcdef"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "config.toml")
	text := "upstream.targets = [\"http://127.0.0.1:9\"]\nadmin.token_file = \"token\"\nstock.redis.password_file = " +
		"\"password\"\n" +
		"stock.reserve.secret_file = \"secret\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, config.NoEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	said := examined(c)
	for _, want := range []string{
		"warn secrets   admin.token_file: other users may read " + filepath.Join(folder, "token") +
			" (mode 0644); write: chmod 600 ",
		"warn secrets   stock.redis.password_file: other users may read " + filepath.Join(folder, "password") +
			" (mode 0640)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("not said: %s\n%s", want, said)
		}
	}
	if strings.Contains(said, "secret_file") {
		t.Errorf("warned of a file that its owner alone may read:\n%s", said)
	}
}
