package e2e

import (
	"os/exec"
	"testing"
)

// clocked runs a gate whose machine's clock is wrong by so much.
func clocked(t *testing.T, wrong, path, bin string) *running {
	t.Helper()
	command := exec.Command(bin, "run", "--config", path)
	command.Env = []string{"SLUICE_CLOCK_AHEAD=" + wrong}
	return start(t, path, command)
}
