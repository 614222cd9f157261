package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// With is c with other values at some keys, checked as a file is; c stays as it is, and no file is read. A repeated
// table is named by what it is called: "limits.rate[per_ip].burst", "route[order].max_in_flight". Values are those of
// JSON, with their units in text: 50, "20/s", "10ms", true. "limits.observe_only[window]" is whether the list has that
// name. Whatever is wrong is a *Error.
func (c *Config) With(values map[string]any) (*Config, error) {
	next := *c
	next.Limits.InFlight = slices.Clone(c.Limits.InFlight)
	next.Limits.Rates, next.Routes = slices.Clone(c.Limits.Rates), slices.Clone(c.Routes)
	d := decoder{report: report{File: c.file, Lines: c.lines}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if name, ok := observedIn(key); ok {
			next.Limits.observe(&d, key, name, values[key])
			continue
		}
		field, _, err := next.field(key)
		if err != nil {
			d.Fail(key, "%v", err)
			continue
		}
		d.value(unpointed(values[key]), field, key)
	}
	r := report{File: c.file, Lines: c.lines}
	next.check(&r)
	r.Behind(d.report)
	return &next, r.Err()
}

// ValueOf is the value at a key, named as for With. It fails where there is no such key.
func (c *Config) ValueOf(key string) (any, error) {
	if name, ok := observedIn(key); ok {
		return !c.Limits.Enforced(name), nil
	}
	field, _, err := c.field(key)
	if err != nil {
		return nil, err
	}
	return shown(field), nil
}

// InTOML is a value at a key, named as for With, as it would be put into a file.
func InTOML(key string, value any) string {
	text, err := json.Marshal(value) // JSON's text, numbers and booleans are TOML's
	if err != nil {
		text = []byte(fmt.Sprint(value))
	}
	if name, ok := observedIn(key); ok {
		return observedInTOML(name, value)
	}
	table, name := cutLast(key)
	line := fmt.Sprintf("%s = %s\n", name, text)
	switch array, called, repeated := strings.Cut(table, "["); {
	case repeated:
		return fmt.Sprintf("# in the [[%s]] with name = %q:\n%s", array, strings.TrimSuffix(called, "]"), line)
	case table == "":
		return line
	}
	return fmt.Sprintf("[%s]\n%s", table, line)
}

// observedIn is NAME of "limits.observe_only[NAME]".
func observedIn(key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, "limits.observe_only[")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, "]")
}

// observe puts name into ObserveOnly, or takes it out.
func (l *Limits) observe(d *decoder, key, name string, value any) {
	on, ok := value.(bool)
	if !ok {
		d.Fail(key, "wants true or false, not %s", kindOf(value))
		return
	}
	l.ObserveOnly = slices.DeleteFunc(slices.Clone(l.ObserveOnly), func(n string) bool { return n == name })
	if on {
		l.ObserveOnly = append(l.ObserveOnly, name)
	}
}

func observedInTOML(name string, value any) string {
	if value == true {
		return fmt.Sprintf("# beside the names that are there:\n[limits]\nobserve_only = [%q]\n", name)
	}
	return fmt.Sprintf("# in [limits], remove %q from observe_only\n", name)
}

func cutLast(key string) (table, name string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 || i < strings.LastIndexByte(key, ']') {
		return "", key
	}
	return key[:i], key[i+1:]
}

// unpointed turns JSON's numbers into TOML's, of which those without a point are another kind.
func unpointed(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return v
}

// Place turns a key that is named as for With into one of Settings: "limits.rate[per_ip].burst" into
// "limits.rate[1].burst". A key that is not there is as it was.
func (c *Config) Place(key string) string {
	_, place, err := c.field(key)
	if err != nil {
		return key
	}
	return place
}

// field is where the value of key stands in c, and where Settings has it.
func (c *Config) field(key string) (at reflect.Value, place string, err error) {
	at = reflect.ValueOf(c).Elem()
	for rest := key; rest != ""; {
		var step step
		step, rest = firstStep(rest)
		if at = tagged(at, step.name); !at.IsValid() {
			return at, "", fmt.Errorf("%.80q is no key", key)
		}
		place = joinKey(place, step.name)
		if step.indexed {
			i, names := called(at, step.called)
			if i < 0 {
				return at, "", fmt.Errorf("no [[%s]] is called %.80q; %s", step.name, step.called,
					Meant(step.called, names))
			}
			at, place = at.Index(i), Element(place, i)
		}
	}
	if k := at.Kind(); k == reflect.Struct || k == reflect.Pointer || k == reflect.Slice || k == reflect.Map {
		return at, "", fmt.Errorf("%.80q has no single value", key)
	}
	return at, place, nil
}

// step is one part of a key: a name, and the name of an element where it is indexed.
type step struct {
	name, called string
	indexed      bool
}

func firstStep(key string) (s step, rest string) {
	end := strings.IndexAny(key, ".[")
	if end < 0 {
		return step{name: key}, ""
	}
	s.name, rest = key[:end], key[end:]
	if rest[0] == '[' {
		s.indexed = true
		s.called, rest, _ = strings.Cut(rest[1:], "]")
	}
	return s, strings.TrimPrefix(rest, ".")
}

// tagged is the field of a struct with a name in TOML; the zero Value = none.
func tagged(of reflect.Value, name string) reflect.Value {
	if of.Kind() != reflect.Struct || name == "" {
		return reflect.Value{}
	}
	for i := range of.NumField() {
		if of.Type().Field(i).Tag.Get("toml") == name {
			return of.Field(i)
		}
	}
	return reflect.Value{}
}

// called is which element of a repeated table has a name; -1 = none, and names are those that there are.
func called(list reflect.Value, name string) (i int, names []string) {
	if list.Kind() == reflect.Slice && list.Type().Elem().Kind() == reflect.Struct {
		for i := range list.Len() {
			names = append(names, tagged(list.Index(i), "name").String())
		}
	}
	return slices.Index(names, name), names
}
