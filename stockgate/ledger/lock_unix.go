//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errLocked is the cause when another process has a folder.
var errLocked = errors.New("another process has this journal")

// lockFolder locks a folder until the file is closed, or the process ends in whichever way.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// unlockFolder ends the lock, also where a child that this process forks just now has the file too: it would hold the
// lock until it executes its program.
func unlockFolder(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
