package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// resolvePath is where a path leads that starts in folder.
func resolvePath(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// errNoFile is the error of a pipe or a device: it would be waited for without end, at each reload.
var errNoFile = errors.New("not a regular file")

// readFile reads at most so many bytes and one more, which tells that there are more.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = errNoFile
	}
	if err != nil {
		return nil, err
	}
	return readAnyFile(path, most)
}

// readAnyFile is Read of whatever path leads to, also of a pipe.
func readAnyFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}

// readCause is an error of the file system without the path, which stands in the message already.
func readCause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
