package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

func TestCheck_MemoryIsTheWorstCaseOfTheConfiguration(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"": "memory    at most 4729 MiB = 2 x (connections 2149 + bodies 64 + answers 112 + tables 16) + 48;",
		"limits.connection.max_connections = 1000\nlimits.connection.max_connections_per_ip = 10\nserver.max_header_size = " +
			"\"4KiB\"\n" +
			"server.body_memory = \"1MiB\"\nupstream.max_conns = 16\n" +
			"access_log.buffer_size = \"1MiB\"": "memory    at most 105 " +
			"MiB = 2 x (connections 16 + bodies 1 + answers 3 + tables 9) + 48;",
		"auth.jwt_algorithm = \"HS256\"\nauth.jwt_key_file = \"" + key + "\"\n" +
			"limits.concurrency.max_queue = 0": "tables 65) + 48",
	} {
		if said := examined(testkit.LimitConfig(t, settings)); !strings.Contains(said, want) {
			t.Errorf("%s\nwant %q in:\n%s", settings, want, said)
		}
	}
}
