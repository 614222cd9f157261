// Package arch holds the tests of what the compiler does not check: which package may know which, that
// no package keeps state of its own, and how large and how named a file may be. It has nothing to import.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "sluice"

// listed is what `go list -json` says of one package, as far as these tests ask.
type listed struct {
	ImportPath   string
	Dir          string
	Name         string
	Export       string // the file with its compiled types
	DepOnly      bool   // not ours: a dependency, or the standard library
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string // of GoFiles alone
}

// short is the import path without the module's name: "cmd/sluice", "proxy".
func (p listed) short() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// paths gives the given files of p with their folder.
func (p listed) paths(names ...[]string) []string {
	var all []string
	for _, list := range names {
		for _, name := range list {
			all = append(all, filepath.Join(p.Dir, name))
		}
	}
	return all
}

// list gives the packages of this module, with more arguments for go list before the pattern.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	// Without -buildvcs=false a clone that belongs to another user cannot be listed.
	args = append(append([]string{"list", "-json", "-buildvcs=false"}, args...), module+"/...")
	cmd := exec.Command("go", args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaint.Bytes())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read what go list wrote: %v", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list names no package: these tests would say nothing")
	}
	return all
}
