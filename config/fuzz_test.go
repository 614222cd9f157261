package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParse breaks files: whatever they hold, Parse returns, every problem is one line of text about a line of
// the file, and every part of a file with good syntax has a line.
func FuzzParse(f *testing.F) {
	if text, err := os.ReadFile(reference); err != nil {
		f.Fatal(err)
	} else {
		f.Add(string(text))
		f.Add(uncommented(string(text)))
	}
	for _, list := range [][]mistake{syntaxMistakes, keyMistakes, typeMistakes, valueMistakes, contradictions,
		notAvailable} {
		for _, m := range list {
			f.Add(m.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "_file") {
			return // do not let the fuzzer choose files to read
		}
		c, err := Parse("config.toml", []byte(text), environment)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v and error %v", c, err)
		}
		if err != nil {
			checkProblems(t, err, 1+strings.Count(text, "\n"))
		}
	})
}

func checkProblems(t *testing.T, err error, lines int) {
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("not a *report.Error with problems: %v", err)
	}
	last := 0
	for _, p := range e.Problems {
		if p.File != "config.toml" || p.Message == "" || p.Line < last || p.Line > lines {
			t.Errorf("of %d lines, after line %d: %#v", lines, last, p)
		}
		if strings.ContainsAny(p.String(), "\r\n") {
			t.Errorf("more than one line of text: %q", p.String())
		}
		last = p.Line
	}
}
