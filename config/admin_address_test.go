package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAdminOf_ReadsABrokenFile(t *testing.T) {
	env := func(name string) (string, bool) {
		at, has := map[string]string{"ADMIN": "127.0.0.1:7"}[name]
		return at, has
	}
	byDefault := Default().Admin.Listen
	for text, want := range map[string]string{
		`admin.listen = "127.0.0.1:7"`:              "127.0.0.1:7",
		`admin.listen = ["127.0.0.1:7"]`:            "127.0.0.1:7",
		"[admin] # who\nlisten = [\"127.0.0.1:7\"]": "127.0.0.1:7",
		`admin.listen = "${ADMIN}"`:                 "127.0.0.1:7",
		`admin.listen = ["${ADMIN}"]`:               "127.0.0.1:7",
		`admin.listen = "${NONE}"`:                  byDefault,
		`admin.listen = ""`:                         byDefault,
		`admin.listen = ["127.0.0.1:7", ":8"]`:      byDefault,
		"[ops]\nlisten = \"127.0.0.1:7\"":           byDefault,
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text+"\n[[route]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := AdminOf(path, env); err != nil || a.Listen != want {
			t.Errorf("%s: %q, %v; want %q", text, a.Listen, err, want)
		}
	}
}
