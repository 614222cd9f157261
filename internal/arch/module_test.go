// Package arch holds the tests of what the compiler does not check: which package may import which, that the licences of
// all modules are listed, that pages name what exists, and that what they show works. It has nothing to import.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "sluice"

// listed is what `go list -json` says of one package, as far as these tests ask.
type listed struct {
	ImportPath string
	Imports    []string // of what is not a test
}

// short is the import path without the module's name: "cmd/sluice", "proxy".
func (p listed) short() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// list gives the packages of this module.
func list(t *testing.T) []listed {
	t.Helper()
	// Without -buildvcs=false a clone that belongs to another user cannot be listed.
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "-buildvcs=false", module+"/...")
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
