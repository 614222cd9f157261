package report

import (
	"sluice/config/source"
	"strings"
)

// maxSecret bounds a file that holds one password or token.
const maxSecret = 4 << 10

// maxScript bounds a file that holds a script, in bytes.
const maxScript = 64 << 10

// LongSecret is a secret that cannot be found by trying.
func (r *Report) LongSecret(key, folder, path string) string {
	faults := len(r.problems)
	value := r.Secret(key, folder, path)
	if value != "" && len(value) < 16 && len(r.problems) == faults {
		r.Fail(key, "%s holds fewer than 16 bytes; write a longer secret into it, such as that of: openssl rand -hex 32",
			path)
	}
	return value
}

// Secret reads one line; the end of the line is not part of it.
func (r *Report) Secret(key, folder, path string) string {
	if path == "" {
		return ""
	}
	path = source.From(folder, path)
	text, err := source.Read(path, maxSecret)
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		r.Fail(key, "open %s: %s; write the path of a file that sluice may read", path, source.Cause(err))
	case value == "":
		r.Fail(key, "%s is empty; write the value into it", path)
	case len(text) > maxSecret:
		r.Fail(key, "%s is larger than 4KiB; write the value alone into it", path)
	case strings.ContainsAny(value, "\r\n\x00"):
		r.Fail(key, "%s holds more than one line; write the value alone into it", path)
	}
	return value
}

// Lua is the text of a script.
func (r *Report) Lua(key, folder, path string) string {
	path = source.From(folder, path)
	text, err := source.Read(path, maxScript)
	switch {
	case err != nil:
		r.Fail(key, "open %s: %s; write the path of a file that sluice may read", path, source.Cause(err))
	case len(text) > maxScript:
		r.Fail(key, "%s is larger than 64KiB; write the script alone into it", path)
	case len(strings.TrimSpace(string(text))) == 0:
		r.Fail(key, "%s is empty; write the script into it", path)
	}
	return string(text)
}
