package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// waiting is a key of the reference that decodes and validates, but that nothing obeys yet. Any value but those
// in only (or, without those, its default) is refused, because a limit that is silently ignored sells too much.
type waiting struct {
	key    string   // a key, or a table for all its keys; without the [index] of repeated tables
	only   []string // what is served
	serves string   // the same in words; "" = only, or the default
}

// notServed shrinks as the program grows: serving a key means to delete its row.
func notServed() []waiting {
	return nil
}

// checkServed refuses what would be ignored.
func (c *Config) checkServed(r *report) {
	s := served{report: r, rows: notServed()}
	s.table(reflect.ValueOf(c).Elem(), reflect.ValueOf(Default()).Elem(), "", "")
}

// served walks over a configuration beside the defaults.
type served struct {
	*report
	rows []waiting
}

// table walks the keys of one table. path has the [index] of repeated tables, general has not.
func (s *served) table(now, usual reflect.Value, path, general string) {
	for i := range now.NumField() {
		tag := now.Type().Field(i).Tag.Get("toml")
		if tag == "" {
			continue
		}
		field, path, general := now.Field(i), join(path, tag), join(general, tag)
		switch row := s.row(general); {
		case field.Kind() == reflect.Struct:
			s.table(field, usual.Field(i), path, general)
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			s.repeated(field, path, general, row)
		case row != nil && !row.allows(field, usual.Field(i)):
			s.refuse(path, row.words(usual.Field(i)))
		}
	}
}

// repeated walks the tables of one name, or refuses each.
func (s *served) repeated(list reflect.Value, path, general string, row *waiting) {
	usual := reflect.New(list.Type().Elem())
	if p, ok := usual.Interface().(presetter); ok {
		p.preset()
	}
	for i := range list.Len() {
		if row != nil {
			s.refuse(element(path, i), row.serves)
			continue
		}
		s.table(list.Index(i), usual.Elem(), element(path, i), general)
	}
}

// row finds what is said of a key or of a table around it.
func (s *served) row(key string) *waiting {
	i := slices.IndexFunc(s.rows, func(w waiting) bool { return w.key == key || strings.HasPrefix(key, w.key+".") })
	if i < 0 {
		return nil
	}
	return &s.rows[i]
}

// refuse says so, unless the key's value is wrong in any version.
func (s *served) refuse(key, serves string) {
	if !slices.ContainsFunc(s.problems, func(p Problem) bool { return p.Key == key }) {
		s.fail(key, "not available yet (this version serves %s)", serves)
	}
}

func (w *waiting) allows(now, usual reflect.Value) bool {
	if w.only != nil {
		return slices.Contains(w.only, now.String())
	}
	return reflect.DeepEqual(now.Interface(), usual.Interface())
}

// words says what is served, as it would stand in the file.
func (w *waiting) words(usual reflect.Value) string {
	switch {
	case w.serves != "":
		return w.serves
	case w.only != nil:
		return choices(w.only)
	}
	switch v := usual.Interface().(type) {
	case string, time.Duration:
		return fmt.Sprintf("%q", fmt.Sprint(v))
	case []string:
		return fmt.Sprintf("[%s]", choices(v))
	case *JSONValue:
		return "none"
	default:
		return fmt.Sprint(v)
	}
}
