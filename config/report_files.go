package config

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	maxSecret = 4 << 10  // bytes of a file that holds one password or token
	maxScript = 64 << 10 // bytes of a file that holds a script
)

// Text reads a file of at most so many bytes, which holds something like "the script"; "" = it was reported why not. A
// relative path starts in folder.
func (r *report) Text(key, folder, path string, most int, what string) string {
	path = resolvePath(folder, path)
	text, err := readFile(path, int64(most))
	switch {
	case err != nil:
		r.Fail(key, "open %s: %s; write the path of a file that sluice may read", path, readCause(err))
	case len(text) > most:
		r.Fail(key, "%s is larger than %s; write %s alone into it", path, binarySize(most), what)
	case len(strings.TrimSpace(string(text))) == 0:
		r.Fail(key, "%s is empty; write %s into it", path, what)
	case beginsWithMark(text):
		r.Fail(key, "%s begins with a byte order mark; save it as UTF-8 without one", path)
	default:
		return string(text)
	}
	return ""
}

// beginsWithMark reports a byte order mark of UTF-8 or UTF-16 (Unicode, section 23.8). It is not cut off a secret: a
// shop that reads the same file may count it.
func beginsWithMark(text []byte) bool {
	return bytes.HasPrefix(text, []byte(byteOrderMark)) || bytes.HasPrefix(text, []byte("\xff\xfe")) ||
		bytes.HasPrefix(text, []byte("\xfe\xff"))
}

// binarySize is a number of whole KiB or MiB.
func binarySize(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", bytes>>20)
	}
	return fmt.Sprintf("%dKiB", bytes>>10)
}

// Secret reads one line; the end of the line is not part of it. "" = no file is named, or it was reported why not.
func (r *report) Secret(key, folder, path string) string {
	if path == "" {
		return ""
	}
	value := strings.TrimRight(r.Text(key, folder, path, maxSecret, "the value"), "\r\n")
	if strings.ContainsAny(value, "\r\n\x00") {
		r.Fail(key, "%s holds more than one line; write the value alone into it", resolvePath(folder, path))
		return ""
	}
	return value
}

// LongSecret is a secret that cannot be found by trying.
func (r *report) LongSecret(key, folder, path string) string {
	value := r.Secret(key, folder, path)
	if value != "" && len(value) < 16 {
		r.Fail(key, "%s holds fewer than 16 bytes; write a longer secret into it, such as that of: openssl rand -hex 32",
			path)
	}
	return value
}

// Lua is the text of a script.
func (r *report) Lua(key, folder, path string) string {
	return r.Text(key, folder, path, maxScript, "the script")
}
