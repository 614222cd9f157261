package config

import (
	"reflect"
	"time"
)

// Keep is next with the values of c at all keys that are not live: what is in force once next is read while c runs.
func (c *Config) Keep(next *Config, live func(key string) bool) *Config {
	kept := *next
	keep(reflect.ValueOf(&kept).Elem(), reflect.ValueOf(c).Elem(), "", live)
	return &kept
}

func keep(to, from reflect.Value, path string, live func(key string) bool) {
	for i := range to.NumField() {
		tag := to.Type().Field(i).Tag.Get("toml")
		if tag == "" {
			continue
		}
		switch key, field := join(path, tag), to.Field(i); {
		case hasLive(field.Type(), key, live) && isTable(field.Type()):
			keep(field, from.Field(i), key, live)
		case !hasLive(field.Type(), key, live):
			field.Set(from.Field(i)) // with the secrets and the content of files of a table
		}
	}
}

func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
}

// hasLive reports whether key is live, or one in it where it is a table.
func hasLive(t reflect.Type, key string, live func(key string) bool) bool {
	if !isTable(t) {
		return live(key)
	}
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("toml"); tag != "" && hasLive(t.Field(i).Type, join(key, tag), live) {
			return true
		}
	}
	return false
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
		key := join(path, tag)
		switch x, y := a.Field(i), b.Field(i); {
		case x.Kind() == reflect.Struct:
			keys = append(keys, diff(x, y, key)...)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
