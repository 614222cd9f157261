package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
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

func TestSchema_IsThatOfTheStructs(t *testing.T) {
	tree := schema()
	for _, d := range rowsOfReference(t) {
		describeIn(tree, d)
	}
	var text bytes.Buffer
	write := json.NewEncoder(&text)
	write.SetEscapeHTML(false)
	write.SetIndent("", "  ")
	if err := write.Encode(tree); err != nil {
		t.Fatal(err)
	}
	same(t, "../config.schema.json", text.Bytes())
}

// describeIn puts into the schema what the page says of a key.
func describeIn(s map[string]any, d described) {
	for name := range strings.SplitSeq(d.key, ".") {
		for s["items"] != nil {
			s = s["items"].(map[string]any)
		}
		s = s["properties"].(map[string]any)[name].(map[string]any)
	}
	s["description"] = d.meaning + ". Kind: " + d.kind + ". Range: " + d.may + "."
	var example map[string]any
	if _, err := toml.Decode("x = "+d.example, &example); err == nil {
		s["examples"] = []any{example["x"]}
	}
}

func TestSchema_PageOfTheConfigurationIsThatOfTheStructs(t *testing.T) {
	same(t, "../docs/configuration.md", page(t))
}

// schema describes a configuration file as a JSON schema (2020-12), for editors: the keys, their kinds and their
// defaults. What a value may be beyond its kind, and what goes together, only Parse knows.
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
		return with(text("duration", "10ms"), written(usual))
	case Size:
		return with(text("size", "16KiB"), written(usual))
	case PerSecond:
		return with(text("rate", "20/s"), fmt.Sprintf("%g/s", float64(usual.Interface().(PerSecond))))
	case time.Time:
		return text("instant", "2026-11-11T00:00:00+08:00")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return value(t.Elem(), reflect.Zero(t.Elem()))
	case reflect.Struct:
		if t == reflect.TypeFor[Class]() {
			return with(table(t, usual), classDefault(usual.Interface().(Class)))
		}
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

// classDefault is a row of [responses.classes] as config.toml writes it.
func classDefault(c Class) map[string]any {
	row := map[string]any{"status": c.Status, "code": c.Code}
	if c.RetryAfter > 0 {
		row["retry_after"] = written(reflect.ValueOf(c.RetryAfter))
	}
	return row
}

func with(s map[string]any, usual any) map[string]any {
	s["default"] = usual
	return s
}

func text(what, like string) map[string]any {
	return map[string]any{"type": "string", "title": what, "examples": []string{like}}
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
