package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/config/report"
)

// configFiles are the files that the running configuration was read from; none where no file holds it. A successor that
// failed may have named others, which are not watched: it is tried again.
type configFiles struct {
	files  atomic.Pointer[[]string]
	failed atomic.Bool // the last that was read was bad

	seen map[string]fingerprint // what they held at the last look
	gone map[string]int         // looks in a row in which a file was missing
}

func (s *configFiles) set(files []string, failed bool) {
	s.files.Store(&files)
	s.failed.Store(failed)
}

func (s *configFiles) some() bool { return len(*s.files.Load()) > 0 }

type fingerprint [sha256.Size]byte

// looksToMiss is how many looks in a row must miss a file that was there: for one it may be gone while it is replaced.
const looksToMiss = 2

// changed looks at the files, and reports whether any of them has changed since the last look, is new or is gone. One
// goroutine at a time calls it.
func (s *configFiles) changed() (changed bool) {
	missing := map[string]int{}
	if s.seen == nil {
		s.seen = map[string]fingerprint{}
	}
	for _, file := range *s.files.Load() {
		sum, err := digest(file)
		switch {
		case err == nil && sum != s.seen[file]:
			s.seen[file], changed = sum, true
		case errors.Is(err, fs.ErrNotExist):
			if missing[file] = s.gone[file] + 1; missing[file] == looksToMiss {
				delete(s.seen, file)
				changed = true
			}
		}
	}
	s.gone = missing
	return changed
}

// readable is the error of what would be waited for without end, such as a pipe.
func (s *configFiles) readable() error {
	for _, file := range *s.files.Load() {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return &report.Error{Problems: []report.Problem{{File: file,
				Message: "not a regular file: it cannot be read again"}}}
		}
	}
	return nil
}

func digest(file string) (sum fingerprint, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return sum, err
	case info.IsDir():
		return digestFolder(file)
	case !info.Mode().IsRegular():
		return sum, os.ErrInvalid
	}
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, err
}

// How often the files are looked at, since notification fails on bind mounts and ConfigMaps; and, in such looks, how
// often a bad configuration is tried again: what it lacked may lie in a file that came later.
const (
	lookEveryFile = 2 * time.Second
	looksToRetry  = 3
)

// hangups is SIGHUP, which otherwise ends a process: it must be asked for before the gate is opened, and is never given
// back. Who is starting reads the file once more, and who drains has nothing to read again, and goes on.
func hangups() <-chan os.Signal {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	return hangup
}

// changes tells when to read the files again: at SIGHUP, and when their content has changed; and, by retry, when they
// were bad for a while. It ends with stop.
func changes(from *configFiles, watch bool, hangup <-chan os.Signal, log *slog.Logger, stop <-chan struct{}) (again,
	retry <-chan struct{}) {
	read, try := make(chan struct{}, 1), make(chan struct{}, 1)
	tell := func(c chan<- struct{}) {
		select {
		case c <- struct{}{}:
		default: // it is going to be read anyway
		}
	}
	go func() {
		tick := time.NewTicker(lookEveryFile)
		defer tick.Stop()
		bad := 0
		for {
			select {
			case <-stop:
				return
			case <-hangup:
				if err := from.readable(); err != nil || !from.some() {
					log.Warn("SIGHUP: there is no configuration file to read again", "err", err)
					continue
				}
				from.changed()
				tell(read)
			case <-tick.C:
				if !from.failed.Load() {
					bad = 0
				} else if bad++; watch && bad%looksToRetry == 0 && from.readable() == nil {
					tell(try)
				}
				if from.changed() && watch {
					tell(read)
				}
			}
		}
	}()
	return read, try
}

// digestFolder is of the names and the content of what lies in a folder, but not of folders in it.
func digestFolder(folder string) (sum fingerprint, err error) {
	entries, err := os.ReadDir(folder) // in the order of their names
	if err != nil {
		return sum, err
	}
	all := sha256.New()
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		one, err := digest(path)
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(all, "%q %x\n", entry.Name(), one)
	}
	all.Sum(sum[:0])
	return sum, nil
}
