package sqlstore

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatientConn_EndsWithSilenceOrWithTheOwnersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		c := &patientConn{Conn: near}
		fails := func(what string, after time.Duration, call func([]byte) (int, error)) {
			t.Helper()
			began := time.Now()
			if _, err := call(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != after {
				t.Errorf("%s: %v after %v, want %v", what, err, time.Since(began), after)
			}
		}
		fails("a read", patience, c.Read)
		fails("a write", patience, c.Write)
		_ = c.SetDeadline(time.Now().Add(time.Second))
		fails("a read of an impatient owner", time.Second, c.Read)
		fails("it is over", 0, c.Write)
		_ = c.SetDeadline(time.Time{})
		go func() {
			time.Sleep(patience - time.Second) // virtual time: a statement that takes almost as long as it may
			_, _ = far.Write([]byte{1})
		}()
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("a slow server: %d, %v", n, err)
		}
		go func() {
			time.Sleep(time.Second) // virtual time: the read has begun by then
			_ = c.SetDeadline(time.Now())
		}()
		fails("a read that the owner ends", time.Second, c.Read)
	})
}
