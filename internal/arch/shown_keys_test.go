package arch

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// A schema is the part of JSON Schema that config.schema.json uses for tables.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
}

// Pages show TOML, and no key that the configuration does not have. The texts of a language are no configuration, and
// adding-a-limit.md adds a key.
func TestKeys_ConfigurationsOnPagesHaveKnownKeys(t *testing.T) {
	var whole schema
	if err := json.Unmarshal([]byte(read(t, filepath.Join(root, "config.schema.json"))), &whole); err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, text := range pages(t) {
		for _, m := range tomlBlock.FindAllStringSubmatch(text, -1) {
			var values map[string]any
			if _, err := toml.Decode(m[1], &values); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, m[1])
			}
			if name == tutorial || strings.HasPrefix(m[1], "# ja.toml") {
				continue
			}
			n++
			for _, key := range whole.unknown(values, "") {
				t.Errorf("%s: unknown key %s in\n%s", name, key, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d configurations on the pages", n)
	}
}

// unknown lists the keys of a table that the schema does not have. A table without properties may have any.
func (s schema) unknown(value any, path string) (all []string) {
	switch value := value.(type) {
	case []map[string]any:
		for _, table := range value {
			if s.Items != nil {
				all = append(all, s.Items.unknown(table, path)...)
			}
		}
	case map[string]any:
		for key, v := range value {
			below, known := s.Properties[key]
			if known {
				all = append(all, below.unknown(v, path+key+".")...)
			} else if s.Properties != nil {
				all = append(all, path+key)
			}
		}
	}
	return all
}
