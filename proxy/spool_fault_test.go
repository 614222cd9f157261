//go:build linux

package proxy

import (
	"io"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/proxy/reject"
	"sluice/upstream/spool"
)

// zeros is the body of an upload.
type zeros struct{ left int }

func (z *zeros) ReadBody(p []byte) (n int, err error) {
	if n = min(len(p), z.left); n == 0 {
		return 0, io.EOF
	}
	z.left -= n
	return n, nil
}

// A disk that is full is not the client's fault.
func TestBody_SpoolThatCannotBeWrittenIsNotMalformed(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	s := spool.New(spool.Options{Memory: 0, File: 64 << 20, Dir: t.TempDir()})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 512 << 10, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &before)
	var u spool.Upload
	u.Begin(nil, &zeros{4 << 20})
	defer u.Release()
	err := u.ReadAhead(s)
	if got := bodyRejection(err); err == nil || got.Reason != reject.Overloaded {
		t.Errorf("%v is answered %v, want overloaded", err, got.Reason)
	}
}
