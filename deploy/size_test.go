package deploy

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// A program that finds methods by names which only run time knows must carry every exported method of every type it
// has: of the Redis client alone that is 8 MB. One such call anywhere is enough, so it is named here.
func TestBinary_FindsNoMethodByName(t *testing.T) {
	testkit.Nightly(t, "it links the binary twice")
	_, said := link(t, "..", "-dumpdep")
	path := build(t, "..") // and so that go does not repeat what the linker said whenever the binary is built again
	t.Logf("the binary has %.1f MB", float64(sizeOf(t, path))/1e6)
	if !strings.Contains(said, "main.main") {
		t.Fatal("the linker does not say what needs what")
	}
	for _, caller := range findingMethods(said) {
		t.Errorf("%s finds methods by name (reflect's Method, MethodByName): leave out the package, or what needs it; go "+
			"build -ldflags=-dumpdep ./cmd/sluice ./cmd/sluice-settle tells who calls it", caller)
	}
}

// findingMethods are the functions that the linker marks so: "caller <marks> -> callee" is a line of what it says.
func findingMethods(said string) []string {
	found, needing := map[string]bool{}, regexp.MustCompile(`^(.+?)(?: <\w+>)* <ReflectMethod>(?: <\w+>)* ->`)
	for line := range strings.Lines(said) {
		if !strings.Contains(line, "<ReflectMethod>") { // as nearly all of very many: the expression is slow
			continue
		}
		if m := needing.FindStringSubmatch(line); m != nil {
			found[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// sizeOf is of a file, or of all in a folder.
func sizeOf(t *testing.T, path string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
