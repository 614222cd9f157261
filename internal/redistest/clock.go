package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clock []byte

// StartWithClock is Start, with a clock of its own: turn lets it run ahead of the machine's by so much, or behind it
// where that is negative, until it is turned again. It needs a C compiler and Linux; without these the test is skipped.
func StartWithClock(t testing.TB, extra ...string) (s *Server, turn func(ahead time.Duration)) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("a clock of Redis' own needs a C compiler, and Linux")
	}
	dir := t.TempDir()
	source, library, ahead := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "ahead")
	if err := os.WriteFile(source, clock, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("build a clock: %v\n%s", err, text)
	}
	file, err := os.Create(ahead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	turn = func(by time.Duration) {
		t.Helper()
		if _, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0); err != nil {
			t.Fatal(err)
		}
	}
	turn(0)
	return start(t, &Server{extra: extra, env: []string{"LD_PRELOAD=" + library, "AHEAD=" + ahead}}), turn
}
