//go:build !unix

package ledger

import (
	"errors"
	"os"
)

var errLocked = errors.New("another process has this journal")

// lockFolder fails: a journal that two processes write is worth nothing.
func lockFolder(string) (*os.File, error) {
	return nil, errors.New("a journal needs file locks, which this system has not")
}

func unlockFolder(f *os.File) error { return f.Close() }
