package accesslog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/proxy/reject"
)

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// No line is lost: what is logged before a rotation is in the old file, what is logged after it in the new one.
func TestOutput_RotationLosesNoLine(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  bool // for the file to be opened anew, as by a signal
		wait time.Duration
	}{"asked": {true, 2 * pause}, "noticed": {false, 2 * beat}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.log")
			synctest.Test(t, func(t *testing.T) {
				l := logTo(t, nil, func(o *Options) { o.Output = "file:" + path })
				l.Start(none)
				log := func(id string) {
					e := testRecord(reject.SoldOut)
					e.ID = []byte(id)
					l.Log(e)
					time.Sleep(2 * pause) // of the bubble
				}
				log("before")
				if err := os.Rename(path, path+".1"); err != nil {
					t.Fatal(err)
				}
				if tt.ask {
					l.Reopen()
				}
				time.Sleep(tt.wait) // of the bubble
				log("after")
				l.Close()
			})
			if old := text(t, path+".1"); strings.Count(old, "\n") != 1 || !strings.Contains(old, "before") {
				t.Errorf("the old file holds %q", old)
			}
			if fresh := text(t, path); strings.Count(fresh, "\n") != 1 || !strings.Contains(fresh, "after") {
				t.Errorf("the new file holds %q", fresh)
			}
		})
	}
}

func TestOutput_ChangesBetweenTwoLines(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	synctest.Test(t, func(t *testing.T) {
		l := logTo(t, nil, func(o *Options) { o.Output = "file:" + a })
		l.Start(none)
		l.Log(testRecord(reject.SoldOut))
		time.Sleep(2 * pause) // of the bubble
		if err := set(l, Settings{Output: "file:" + dir + "/none/b", RejectedEvery: 1}); err == nil {
			t.Error("a file in a folder that is not there was opened")
		}
		l.Log(testRecord(reject.SoldOut))
		time.Sleep(2 * pause) // of the bubble
		if _, discard, err := l.Prepare(Settings{Output: "file:" + b, RejectedEvery: 1}); err != nil {
			t.Fatal(err)
		} else {
			discard()
		}
		l.Log(testRecord(reject.SoldOut))
		time.Sleep(2 * pause) // of the bubble
		if err := set(l, Settings{Output: "file:" + b, RejectedEvery: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * pause) // of the bubble
		l.Log(testRecord(reject.SoldOut))
		l.Close()
	})
	if strings.Count(text(t, a), "\n") != 3 || strings.Count(text(t, b), "\n") != 1 {
		t.Errorf("the files hold %q and %q", text(t, a), text(t, b))
	}
}

// stuck is a pipe without a reader.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// An output that accepts nothing delays neither requests nor the end of the process, and lost lines are counted.
func TestOutput_StuckOutputDelaysNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := stuck{make(chan struct{})}
		l := logTo(t, to, nil)
		l.Start(none)
		l.Log(testRecord(reject.SoldOut))
		time.Sleep(2 * pause) // of the bubble
		for ; l.recent.lost == 0; l.Log(testRecord(reject.SoldOut)) {
			if len(l.recent.pages) > backlog {
				t.Fatalf("%d pages wait", len(l.recent.pages))
			}
		}
		start := time.Now()
		l.Close()
		if waited := time.Since(start); waited != closeTimeout {
			t.Errorf("the end waited for %s", waited)
		}
		close(to.release)
		<-l.stopped
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutput_FailedWritesAreCounted(t *testing.T) {
	l := logTo(t, broken{}, nil)
	l.Start(none)
	for range 3 {
		l.Log(testRecord(reject.SoldOut))
	}
	l.Close()
	if n := l.failed.Load(); n < 3 {
		t.Errorf("%d lines count as lost, want 3", n)
	}
}
