package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
)

// AdminOf reads where a gate is asked out of a file that may be broken, line by line: operators must reach a running
// gate while its file is being repaired. A key that is not found or cannot be read has its default. It fails where the
// file cannot be read.
func AdminOf(path string, env func(string) (string, bool)) (Admin, error) {
	a := Default().Admin
	text, err := readAnyFile(path, maxText)
	if err != nil {
		return a, err
	}
	inAdmin, top := false, true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			header, _, _ := strings.Cut(line, "#")
			inAdmin, top = strings.TrimSpace(header) == "[admin]", false
			continue
		}
		if inAdmin {
			line = "admin." + line
		}
		var one struct {
			Admin map[string]any `toml:"admin"`
		}
		if _, err := toml.Decode(line, &one); !inAdmin && !top || err != nil {
			continue
		}
		d, read := decoder{env: env}, a
		d.table(one.Admin, reflect.ValueOf(&read).Elem(), "admin")
		if len(d.problems) == 0 && read.Listen != "" {
			a = read
		}
	}
	if a.TokenFile != "" {
		// without a token the gate says that it wants one
		token, _ := os.ReadFile(resolvePath(filepath.Dir(path), a.TokenFile))
		a.Token = Secret(strings.TrimSpace(string(token)))
	}
	return a, nil
}
