package gateway

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
	"sync"
	"syscall"
	"time"

	"sluice/config"
)

// configFiles are the files that the running configuration was read from; none where no file holds it. A successor that
// failed may have named others, which are not watched: it is tried again.
type configFiles struct {
	mu     sync.Mutex // guards list and failed
	list   []string
	failed bool // what was read last was bad

	looking sync.Mutex             // guards seen
	seen    map[string]fingerprint // what they held at the last look
}

func (s *configFiles) set(files []string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.failed = files, failed
}

func (s *configFiles) now() (files []string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list, s.failed
}

type fingerprint [sha256.Size]byte

// changed looks at the files, and reports whether any of them has changed since the last look, is new or is gone. Each
// reload looks before it reads: a file that is written back to what it was before that reload has changed, too.
func (s *configFiles) changed() (changed bool) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.seen == nil {
		s.seen = map[string]fingerprint{}
	}
	files, _ := s.now()
	for _, file := range files {
		sum, err := digest(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // the next look may tell
		}
		if sum != s.seen[file] { // a file that is not there has the zero sum
			s.seen[file], changed = sum, true
		}
	}
	return changed
}

// readable is the error of what would be waited for without end, such as a pipe.
func (s *configFiles) readable() error {
	files, _ := s.now()
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return &config.Error{Problems: []config.Problem{{File: file,
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

// lookEveryFile is how often the files are looked at, since notification fails on bind mounts and ConfigMaps.
const lookEveryFile = 2 * time.Second

// lookAgain is how long after a change they are looked at again: what is written meanwhile may be half of it.
const lookAgain = 500 * time.Millisecond

// hangups is SIGHUP, which otherwise ends a process: it must be asked for before the gate is opened, and is never given
// back. Who is starting reads the file once more, and who drains has nothing to read again, and goes on.
func hangups() <-chan os.Signal {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	return hangup
}

// follow has reload read the files again: at SIGHUP and, where they are watched, when their content has changed and is
// the same at a second look; while they are bad as a retry, since what they lacked may lie in a file that comes later.
// end ends that.
func (s *configFiles) follow(watch func() bool, hangup <-chan os.Signal, log *slog.Logger, reload func(retry bool),
) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		look := time.NewTimer(lookEveryFile)
		defer look.Stop()
		for again := false; ; {
			select {
			case <-stop:
				return
			case <-hangup:
				files, _ := s.now()
				if err := s.readable(); err != nil || len(files) == 0 {
					log.Warn("SIGHUP: there is no configuration file to read again", "err", err)
					continue
				}
				again = false
				reload(false)
			case <-look.C:
				changed, pause := s.changed(), lookEveryFile
				switch _, failed := s.now(); {
				case changed:
					pause = lookAgain
				case !watch():
				case again:
					reload(false)
				case failed && s.readable() == nil:
					reload(true)
				}
				again = changed
				look.Reset(pause)
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
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
