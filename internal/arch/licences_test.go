package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The list names the modules that the binaries hold, each with the version of go.mod: make licences.
func TestLicences_AreListed(t *testing.T) {
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-buildvcs=false", "-deps", "-json=Module", "./cmd/sluice",
			"./cmd/sluice-settle")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for dec := json.NewDecoder(bytes.NewReader(text)); ; {
			var p struct {
				Module *struct{ Path, Version string }
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module != nil && p.Module.Version != "" {
				linked[p.Module.Path+" "+p.Module.Version] = true
			}
		}
	}
	listed := map[string]bool{}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v\\S+) \\| (MIT|Apache-2.0|BSD-[23]-Clause|ISC|MPL-2.0) \\|$")
	for _, row := range rows.FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "licences.md")), -1) {
		listed[row[1]+" "+row[2]] = true
	}
	if want, got := slices.Sorted(maps.Keys(linked)), slices.Sorted(maps.Keys(listed)); !slices.Equal(want, got) ||
		len(want) == 0 {
		t.Errorf("the binaries hold %q\ndocs/licences.md lists %q: make licences", want, got)
	}
}
