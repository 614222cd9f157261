package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that cannot be written is found before a slow client needs it, and health says so.
func TestSpool_FolderThatCannotBeWrittenIsTold(t *testing.T) {
	t.Parallel()
	g := gate(t, boundless, open(t, nil).setting(),
		fmt.Sprintf("upstream.spool_dir = %q", filepath.Join(t.TempDir(), "none")),
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	wants(t, g.readiness(), "WARN spool: open spool", "degraded")
	text, _ := exec.Command(binary, "check", "--online", g.file).CombinedOutput()
	if !strings.Contains(string(text), "warn spool") {
		t.Errorf("check --online: %s", text)
	}
}
