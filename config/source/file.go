// Package source reads what a configuration names outside of its own file: other files, each within a bound, and
// variables of the environment.
//
// It does not know which keys name them, and reports no problem: packages config and report do.
package source

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// From is where a path leads that starts in folder.
func From(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// errNoFile is the error of a pipe or a device: it would be waited for without end, at each reload.
var errNoFile = errors.New("not a regular file")

// Read reads at most so many bytes and one more, which tells that there are more.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = errNoFile
	}
	if err != nil {
		return nil, err
	}
	return ReadAny(path, most)
}

// ReadAny is Read of whatever path leads to, also of a pipe.
func ReadAny(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}

// Cause is an error of the file system without the path, which stands in the message already.
func Cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
