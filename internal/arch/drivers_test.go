package arch

import (
	"os/exec"
	"strings"
	"testing"
)

// The gateway never opens a database: settlement is cmd/sluice-settle, and nothing of it is part of cmd/sluice.
func TestSluice_HasNoDatabaseDriver(t *testing.T) {
	banned := []string{"sluice/settle", "sluice/internal/settler", "github.com/jackc/", "github.com/go-sql-driver/",
		"modernc.org/", "github.com/pressly/goose", "github.com/riverqueue/"}
	for command, wants := range map[string]bool{"./cmd/sluice": false, "./cmd/sluice-settle": true} {
		cmd := exec.Command("go", "list", "-buildvcs=false", "-deps", command)
		cmd.Dir = root
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", command, err)
		}
		for _, ban := range banned {
			if has := strings.Contains("\n"+string(text), "\n"+ban); has != wants {
				t.Errorf("%s has a package of %s: %v, want %v", command, ban, has, wants)
			}
		}
	}
}
