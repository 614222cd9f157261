package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write config.schema.json and docs/configuration.md anew")

// same holds a file that is made of the structs against what would be made now.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the structs say (%v): make reference", path, err)
	}
}

func TestSchemaIsThatOfTheStructs(t *testing.T) {
	var text bytes.Buffer
	write := json.NewEncoder(&text)
	write.SetEscapeHTML(false)
	write.SetIndent("", "  ")
	if err := write.Encode(schema()); err != nil {
		t.Fatal(err)
	}
	same(t, "../config.schema.json", text.Bytes())
}

func TestPageOfTheConfigurationIsThatOfTheStructs(t *testing.T) {
	same(t, "../docs/configuration.md", page(t))
}

// page is the table of all keys: kinds and defaults are those of the structs, meanings the comments of the reference.
func page(t *testing.T) []byte {
	t.Helper()
	meanings := meanings(referenceText(t))
	var out bytes.Buffer
	out.WriteString("# Every key\n\nWritten by `make reference` from the structs and from the comments of [config.toml](../config.toml), which tells the same in the form of a file.\n" +
		"Editors take `config.schema.json`; with taplo: `#:schema ./config.schema.json` as the file's first line. Text may hold `${NAME}` or\n`${NAME:-fallback}`, from the environment.\n")
	table := "-"
	for _, key := range structKeys(reflect.TypeFor[Config](), "") {
		in, name := "", key
		if i := strings.LastIndex(key, "."); i >= 0 {
			in, name = key[:i], key[i+1:]
		}
		if in != table {
			table = in
			title := "before the first table"
			if in != "" {
				title = "[" + in + "]"
				if kind, _ := kindAt(schema(), in); kind == "list" {
					title = "[" + title + "]"
				}
			}
			fmt.Fprintf(&out, "\n## %s\n\n| key | kind | default | meaning |\n| --- | --- | --- | --- |\n", title)
		}
		kind, usual := kindAt(schema(), key)
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, kind, usual, strings.ReplaceAll(meanings[key], "|", "\\|"))
	}
	return out.Bytes()
}

// meanings reads what the reference says beside each key, those in comments included.
func meanings(text string) map[string]string {
	header := regexp.MustCompile(`^(?:# )?\[\[?([a-z_.]+)\]\]?`)
	line := regexp.MustCompile(`^(?:# )?([a-z_0-9]+) = ("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^ #]+)(?: +# ?(.*))?$`)
	all, table := map[string]string{}, ""
	for _, l := range strings.Split(text, "\n") {
		if m := header.FindStringSubmatch(l); m != nil {
			table = m[1]
		} else if m := line.FindStringSubmatch(l); m != nil {
			all[join(table, m[1])] = m[3]
		}
	}
	return all
}

// kindAt finds a key in the schema, and says its kind and its default in words.
func kindAt(s map[string]any, key string) (kind, usual string) {
	for name := range strings.SplitSeq(key, ".") {
		for s["items"] != nil {
			s = s["items"].(map[string]any)
		}
		s = s["properties"].(map[string]any)[name].(map[string]any)
	}
	kind, _ = s["type"].(string)
	if d, ok := s["description"].(string); ok {
		kind, _, _ = strings.Cut(d, ", like")
	}
	if kind == "array" {
		kind = "list"
	}
	if kind == "" {
		kind = "any"
	}
	usual = "–"
	if d, ok := s["default"]; ok {
		text, err := json.Marshal(d)
		if err != nil {
			return kind, err.Error()
		}
		usual = "`" + string(text) + "`"
	}
	return kind, usual
}

func TestMeaningsAreReadFromTheReference(t *testing.T) {
	got := meanings("mode = \"enforce\"  # one\n[a]\n# x = [1, 2]  # two\n[[b]]\ny = 'a # b'\n")
	if got["mode"] != "one" || got["a.x"] != "two" || len(got) != 3 {
		t.Errorf("read %q", got)
	}
}

// schema describes a configuration file as a JSON schema (2020-12), for editors: the keys, their kinds and their defaults.
// What a value may be beyond its kind, and what goes together, only Parse knows.
func schema() map[string]any {
	s := table(reflect.TypeFor[Config](), reflect.ValueOf(Default()).Elem())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Sluice"
	return s
}

// table describes a struct; usual holds the defaults of its keys.
func table(t reflect.Type, usual reflect.Value) map[string]any {
	keys := map[string]any{}
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("toml"); tag != "" {
			keys[tag] = value(t.Field(i).Type, usual.Field(i))
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": keys}
}

// value describes one key.
func value(t reflect.Type, usual reflect.Value) map[string]any {
	switch reflect.Zero(t).Interface().(type) {
	case time.Duration:
		return with(text("a duration with its unit", "10ms"), written(usual))
	case Size:
		return with(text("a size with its unit", "16KiB"), written(usual))
	case PerSecond:
		return with(text("a rate with its unit", "20/s"), fmt.Sprintf("%g/s", float64(usual.Interface().(PerSecond))))
	case time.Time:
		return text("an instant with its offset", "2026-11-11T00:00:00+08:00")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return value(t.Elem(), reflect.Zero(t.Elem()))
	case reflect.Struct:
		return table(t, usual)
	case reflect.Slice:
		element := reflect.New(t.Elem())
		if p, ok := element.Interface().(presetter); ok {
			p.preset()
		}
		list := map[string]any{"type": "array", "items": value(t.Elem(), element.Elem())}
		if t.Elem().Kind() == reflect.String && usual.Len() > 0 {
			list["default"] = usual.Interface()
		}
		return list
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": value(t.Elem(), reflect.Zero(t.Elem()))}
	case reflect.Bool:
		return with(map[string]any{"type": "boolean"}, usual.Interface())
	case reflect.Int:
		return with(map[string]any{"type": "integer"}, usual.Interface())
	case reflect.Float64:
		return with(map[string]any{"type": "number"}, usual.Interface())
	case reflect.String:
		return with(map[string]any{"type": "string"}, usual.String())
	}
	return map[string]any{}
}

func with(s map[string]any, usual any) map[string]any {
	s["default"] = usual
	return s
}

func text(what, like string) map[string]any {
	return map[string]any{"type": "string", "description": what + ", like " + like, "examples": []string{like}}
}

// written is a default as it would stand in the file.
func written(v reflect.Value) string {
	switch v := v.Interface().(type) {
	case time.Duration:
		s := strings.TrimSuffix(v.String(), "0s")
		if s == "" {
			return "0s"
		}
		if strings.HasSuffix(s, "h0m") {
			return strings.TrimSuffix(s, "0m")
		}
		if strings.HasSuffix(s, "m") || strings.HasSuffix(s, "h") {
			return s
		}
		return v.String()
	case interface{ String() string }:
		return v.String()
	}
	return ""
}
