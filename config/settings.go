package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one key of a configuration as it is in force.
type Setting struct {
	Key    string `json:"key"`    // such as "limits.window.max" or "route[2].match"
	Value  any    `json:"value"`  // as a file would have it: text, a number, a boolean, a list or a table
	Origin string `json:"origin"` // "config.toml:12", or "default"
}

// Settings lists every key in the order of the reference. No secret is in it: of a key that names a file the name is
// shown, and of a URL neither the password nor the query.
func (c *Config) Settings() []Setting {
	var all []Setting
	walk(reflect.ValueOf(c).Elem(), "", func(key string, _ reflect.StructTag, v reflect.Value) {
		all = append(all, Setting{key, shown(v), c.origin(key)})
	})
	return all
}

// fingerprint tells what the instances of a shop should have in common: 12 hex digits over the values of all keys, with
// what stands in the environment, but for those that differ by nature from one machine to the next: listeners, files
// and folders. What stands in other files is not part of it.
func (c *Config) fingerprint() string {
	var of strings.Builder
	for _, s := range c.Settings() {
		if !ownOfInstance(s.Key) {
			text, _ := json.Marshal(s.Value) // text, numbers, booleans, lists
			fmt.Fprintf(&of, "%s = %s\n", s.Key, text)
		}
	}
	return versionOf([]byte(of.String()))
}

// ownOfInstance reports whether instances of one shop may have different values for key.
func ownOfInstance(key string) bool {
	if key == "access_log.output" {
		return true
	}
	name := key[strings.LastIndexByte(key, '.')+1:]
	return name == "listen" || strings.HasPrefix(name, "socket_") || strings.HasSuffix(name, "_file") ||
		strings.HasSuffix(name, "_dir")
}

// origin is the line of key itself, "default" where the file has none.
func (c *Config) origin(key string) string {
	if n, ok := c.lines[key]; ok {
		return c.file + ":" + strconv.Itoa(n)
	}
	return "default"
}

// walk visits the keys of one table, and of those inside it. path has the [index] of repeated tables.
func walk(table reflect.Value, path string, visit func(key string, tag reflect.StructTag, v reflect.Value)) {
	for i := range table.NumField() {
		tag := table.Type().Field(i).Tag
		name := tag.Get("toml")
		if name == "" {
			continue
		}
		v, key := table.Field(i), joinKey(path, name)
		switch {
		case v.Kind() == reflect.Pointer && v.IsNil():
		case v.Kind() == reflect.Pointer:
			walk(v.Elem(), key, visit)
		case isTable(v.Type()):
			walk(v, key, visit)
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			for j := range v.Len() {
				walk(v.Index(j), Element(key, j), visit)
			}
		default:
			visit(key, tag, v)
		}
	}
}

// shown is a value as a file would have it, without what is secret.
func shown(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case Size:
		return x.String()
	case PerSecond:
		return x.String()
	case time.Time:
		return x.Format(time.RFC3339)
	case Secret:
		return x.String()
	case string:
		return masked(x)
	}
	switch v.Kind() {
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = shown(v.Index(i))
		}
		return list
	case reflect.Interface:
		if !v.IsNil() {
			return shown(v.Elem())
		}
	}
	return v.Interface()
}

// masked hides the secrets that a URL may carry: user, password and query.
func masked(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	if u.User != nil {
		u.User = url.User("(secret)")
	}
	if u.RawQuery != "" {
		u.RawQuery = "(secret)"
	}
	if u.User == nil && u.RawQuery == "" {
		return text
	}
	hidden, _ := url.PathUnescape(u.String())
	return hidden
}

// Change is one key that two configurations have different values for. What one of them does not have is nil.
type Change struct {
	Key    string `json:"key"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// String is the change as a log tells it, with the program that it needs a restart of.
func (c Change) String() string {
	text := c.Key + ": " + spelled(c.Before) + " -> " + spelled(c.After)
	if OfSettle(c.Key) {
		text += " (restart sluice-settle)"
	}
	return text
}

// OfSettle reports whether sluice-settle goes by key. It reads its file at its start alone.
func OfSettle(key string) bool { return strings.HasPrefix(key, "settle.") }

// spelled is a value of a Setting in TOML; what is longer than a line of a terminal is cut.
func spelled(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 80
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// Changes lists what differs between a and b, key by key: those of b in its order, then those that b has no longer.
// What stands in other files is not looked at.
func Changes(a, b *Config) []Change {
	before := map[string]any{}
	for _, s := range a.Settings() {
		before[s.Key] = s.Value
	}
	var changes []Change
	for _, s := range b.Settings() {
		old, had := before[s.Key]
		delete(before, s.Key)
		if !had || !reflect.DeepEqual(old, s.Value) {
			changes = append(changes, Change{s.Key, old, s.Value})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		changes = append(changes, Change{key, before[key], nil})
	}
	return changes
}

func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
}

// Diff lists the keys whose values differ, such as "limits.window.max", in the order of the reference. A repeated table
// that differs anywhere is one key, "route".
func Diff(a, b *Config) []string {
	return diff(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), "")
}

func diff(a, b reflect.Value, path string) (keys []string) {
	for i := range a.NumField() {
		tag := a.Type().Field(i).Tag.Get("toml")
		if tag == "" {
			continue
		}
		key := joinKey(path, tag)
		switch x, y := a.Field(i), b.Field(i); {
		case x.Kind() == reflect.Struct:
			keys = append(keys, diff(x, y, key)...)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
