package arch

import (
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"

	"sluice/config"
	"sluice/gateway"
)

// The cheat sheet is a configuration that a gateway runs, of 25 keys, and 10 commands; in both languages the same.
func TestCheatSheet_IsOfUseAsItStands(t *testing.T) {
	var known []any
	for _, page := range []string{"cheat-sheet.md", "cheat-sheet.zh-CN.md"} {
		text := read(t, filepath.Join(manual, page))
		shown := tomlBlock.FindStringSubmatch(text)
		if shown == nil {
			t.Fatalf("%s has no configuration", page)
		}
		if _, err := config.Parse(page, []byte(shown[1]), config.NoEnvironment, gateway.Validate); err != nil {
			t.Errorf("%s: %v", page, err)
		}
		var values map[string]any
		meta, err := toml.Decode(shown[1], &values)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, k := range meta.Keys() {
			key, kind := k.String(), meta.Type(k...)
			if kind != "Hash" && kind != "ArrayHash" && key != "route.name" && key != "limits.rate.name" {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if keys = slices.Compact(keys); len(keys) != 25 {
			t.Errorf("%s shows %d keys: %q", page, len(keys), keys)
		}
		commands := regexp.MustCompile(`(?m)^sluice .*?(?:  +#|$)`).FindAllString(text, -1)
		if len(commands) != 10 {
			t.Errorf("%s shows %d commands: %q", page, len(commands), commands)
		}
		rows := regexp.MustCompile(`(?m)^\|`).FindAllString(text, -1)
		if now := []any{values, commands, rows}; known == nil {
			known = now
		} else if !reflect.DeepEqual(now, known) {
			t.Errorf("the pages differ: %v\n%v", now, known)
		}
	}
}
