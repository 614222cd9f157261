package accesslog

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// output is where lines go.
type output struct {
	name string // as configured
	to   io.Writer
	file *os.File // of "file:" alone
}

// openOutput opens "off", "stdout" or "file:/path". A file is appended to, and readable for its owner and group.
func openOutput(name string, stdout io.Writer) (*output, error) {
	o := &output{name: name, to: io.Discard}
	if name == "stdout" {
		o.to = stdout
	}
	path, ok := strings.CutPrefix(name, "file:")
	if !ok {
		return o, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w; write \"file:\" and the path of a file that sluice may write, "+
			"in a folder that is there", err)
	}
	o.file, o.to = file, file
	return o, nil
}

func (o *output) close() {
	if o.file != nil {
		_ = o.file.Close() // every write has reported its own error
	}
}

// moved reports whether the file was renamed or removed, as by a rotation.
func (o *output) moved() bool {
	if o.file == nil {
		return false
	}
	open, err := o.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(strings.TrimPrefix(o.name, "file:"))
	return err != nil || !os.SameFile(open, named)
}
