package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/sorted"
)

// Problem is one thing that is wrong in a configuration file.
type Problem struct {
	File    string `json:"file"`           // as the operator named it; "" = it belongs to no file
	Line    int    `json:"line,omitempty"` // from 1; 0 = the problem belongs to no line
	Key     string `json:"key,omitempty"`  // such as "limits.window.max" or "route[2].gate", counted from 1; may be empty
	Message string `json:"message"`        // what is wrong and the way out, lower case
}

// String renders the problem as "file:line: key: message", without the parts that it lacks.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Message)
	return strings.TrimPrefix(b.String(), ": ")
}

// Error is everything that reading found wrong, in the order of the file's lines.
// Where the syntax is wrong, nothing else is looked at; keys and types, and then values, are judged together, but for
// the values of a table whose keys could not be read.
type Error struct {
	Problems []Problem // never empty
}

// Error renders one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// OfRunning is the error for a gate that runs with what the file was before. Where the file is gone it must be
// restored: a new one would replace the configuration that protects the shop.
func (e *Error) OfRunning() *Error {
	told := &Error{Problems: slices.Clone(e.Problems)}
	for i, p := range told.Problems {
		if strings.HasPrefix(p.Message, noFile) {
			told.Problems[i].Message = noFile + "; restore it: sluice config print --admin 127.0.0.1:8090 " +
				"(your admin.listen) prints what is in force"
		}
	}
	return told
}

// noFile begins the message about a configuration file that is not there.
const noFile = "no such file"

// noFileError is the error for a configuration file that is not there.
func noFileError(path string) *Error {
	message := noFile + `; write one with "sluice init", or name another file`
	return &Error{Problems: []Problem{{File: path, Message: message}}}
}

// report collects the problems of one stage.
type report struct {
	File     string            // as the operator named it
	Lines    keyLines          // of its keys
	Rules    map[string]string // what may stand at each key, in words; nil = it is not asked for
	problems []Problem
}

// Rule notes what may stand at key. The first rule of a key is the narrowest.
func (r *report) Rule(key, may string) {
	if r.Rules == nil {
		return
	}
	key = WithoutIndexes(key)
	if _, has := r.Rules[key]; !has {
		r.Rules[key] = may
	}
}

// Fail notes a problem at key, or at the nearest table around it where key itself is not in the file.
func (r *report) Fail(key, format string, args ...any) {
	args = slices.Clone(args)
	for i, one := range args {
		switch x := one.(type) {
		case string:
			args[i] = hushed(x)
		case error:
			args[i] = hushed(x.Error())
		}
	}
	r.problems = append(r.problems, Problem{
		File: r.File, Line: r.Lines.Near(key), Key: key, Message: fmt.Sprintf(format, args...),
	})
}

// hushed is a value that is told of because it is wrong: into the log, and to all who look at the gate. It may be wrong
// by a password, as of a URL where an address belongs, and need not be a URL that can be read.
func hushed(text string) string {
	start := 0
	if i := strings.Index(text, "://"); i >= 0 {
		start = i + 3
		if q := strings.IndexByte(text[start:], '?'); q >= 0 {
			text = text[:start+q] + "?(secret)"
		}
	}
	at := strings.LastIndexByte(text, '@')
	if at < start || start == 0 && !strings.Contains(text[:at], ":") {
		return text
	}
	return text[:start] + "(secret)" + text[at:]
}

// Add notes the problems that others found.
func (r *report) Add(errs []error) {
	for _, err := range errs {
		var e *Error
		if errors.As(err, &e) {
			r.problems = append(r.problems, e.Problems...)
		} else {
			r.problems = append(r.problems, Problem{File: r.File, Message: err.Error()})
		}
	}
}

// Behind puts the problems of an earlier stage before these, without what those may have brought about: a table in
// which a key was misspelled would be told to lack it as well. A key that is written there is told of.
func (r *report) Behind(earlier report) {
	r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool {
		_, written := r.Lines[p.Key]
		return slices.ContainsFunc(earlier.problems, func(e Problem) bool {
			return e.Key == p.Key || !written && tableOf(e.Key) == tableOf(p.Key) || strings.HasPrefix(e.Key, p.Key+".")
		})
	})
	r.problems = append(r.problems, earlier.problems...)
}

// tableOf is the table that a key stands in.
func tableOf(key string) string { return key[:max(0, strings.LastIndexByte(key, '.'))] }

// Err is nil for a clean stage.
func (r *report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sorted.By(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Problems: slices.Compact(r.problems)}
}
