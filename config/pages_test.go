package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPages_AreReadFromTheConfigurationsFolder(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pages/sold_out.html", "a")
	write("pages/ja.toml", "b")
	write("pages/.hidden.html", "c")
	write("pages/README.md", "d")
	parse := func(languages string) (*Config, error) {
		text := "[responses]\nlanguages = [" + languages + "]\ntemplate_dir = \"pages\"\n"
		return Parse(filepath.Join(folder, "config.toml"), []byte(whole(text)), environment)
	}
	c, err := parse(`"ja", "en"`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"sold_out.html": "a", "ja.toml": "b"}, c.Responses.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if !slices.Contains(c.Files(), filepath.Join(folder, "pages")) {
		t.Errorf("the folder is not looked at for changes: %q", c.Files())
	}
	write("pages/busy.html", strings.Repeat("x", maxPage+1))
	if _, err := parse(`"en"`); err == nil || !strings.Contains(err.Error(),
		":3: responses.template_dir: "+filepath.Join(folder, "pages/busy.html")+" is larger than 64KiB") {
		t.Errorf("a page that is too large: %v", err)
	}
}
