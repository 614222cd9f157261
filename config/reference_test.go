package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const reference = "../config.toml"

func referenceText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfig_ReferenceShowsTheDefaults(t *testing.T) {
	got, err := Load(reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Upstream.Targets) != 1 || len(got.Routes) != 2 {
		t.Errorf("targets %q, routes %v: want the one target and the two routes that are examples", got.Upstream.Targets,
			got.Routes)
	}
	got.Upstream.Targets, got.Routes = nil, nil
	if diff := cmp.Diff(Default(), got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("config.toml differs from Default() (-default +file):\n%s", diff)
	}
}

// uncommented puts every commented-out key of the reference in force, and the examples of three empty ones.
// What is prose and not TOML stays a comment.
func uncommented(text string) string {
	example := regexp.MustCompile(`^(path|status_url|endpoint) = ""(.* e\.g\. )("[^"]*")(.*)$`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		rest, commented := strings.CutPrefix(line, "# ")
		var any map[string]any
		if _, err := toml.Decode(rest, &any); commented && err == nil && len(any) > 0 {
			lines[i] = rest
		}
		lines[i] = example.ReplaceAllString(lines[i], `$1 = $3 # $2$4`)
	}
	return strings.Join(lines, "\n")
}

func TestConfig_ExamplesOfTheReferenceAreAccepted(t *testing.T) {
	text := uncommented(referenceText(t))
	// The one sale of the reference has its stock written, which needs a ledger.
	reserving := strings.Replace(text, `gate = "check"`, `gate = "reserve"`, 1)
	if reserving == text {
		t.Fatal("no route of the reference checks")
	}
	if _, err := Parse("config.toml", []byte(reserving), nil); err != nil {
		t.Errorf("an example of config.toml is refused: %v", err)
	}
	for _, example := range []string{"\npath = \"/healthz\"", "\nburst = 40", "\nkey_file", "\nends = "} {
		if !strings.Contains(text, example) {
			t.Errorf("the example %q was not put in force", example)
		}
	}
}

func TestConfig_ReferenceNamesEveryKey(t *testing.T) {
	var tree map[string]any
	if _, err := toml.Decode(uncommented(referenceText(t)), &tree); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	nameKeys(tree, "", named)
	for _, key := range structKeys(reflect.TypeFor[Config](), "") {
		if !named[key] {
			t.Errorf("config.toml does not show %s", key)
		}
	}
}

// nameKeys lists the keys of a parsed file, without the [index] of repeated tables.
func nameKeys(v any, path string, into map[string]bool) {
	into[path] = true
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			nameKeys(value, joinKey(path, name), into)
		}
	case []map[string]any:
		for _, value := range v {
			nameKeys(value, path, into)
		}
	}
}

// structKeys lists the keys that a struct can hold, in the same form.
func structKeys(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Class]() || t.Kind() != reflect.Struct || t.NumField() == 0 ||
		t.Field(0).Tag.Get("toml") == "" {
		return []string{path}
	}
	var keys []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("toml"); tag != "" {
			keys = append(keys, structKeys(t.Field(i).Type, joinKey(path, tag))...)
		}
	}
	return keys
}
