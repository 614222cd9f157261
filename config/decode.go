package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// decoder puts a parsed TOML tree into the structs of this package. The toml package could do that too, but it
// stops at the first mistake, reads 5 as five nanoseconds and takes "LISTEN" for "listen".
type decoder struct {
	report
	env func(string) (string, bool)
}

// presetter is an element of a repeated table that has defaults.
type presetter interface{ preset() }

// table decodes tree into a struct: a field is named by its toml tag, a field without one is not a key.
func (d *decoder) table(tree map[string]any, into reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	var known []string
	for i := range into.NumField() {
		if tag := into.Type().Field(i).Tag.Get("toml"); tag != "" {
			fields[tag] = into.Field(i)
			known = append(known, tag)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key := joinKey(path, name)
		if field, ok := fields[name]; ok {
			d.value(tree[name], field, key)
		} else if instead := replaced(key, tree[name]); instead != "" {
			d.Fail(key, "%s", instead)
		} else {
			d.Fail(key, "%s", unknownIn(path, kindOfKey(tree[name]), name, known))
		}
	}
}

// listenValue lets every listen be written as one address or as a list: a list of one where one is wanted, and one
// where a list is.
func listenValue(v any, into reflect.Value) any {
	switch list, isList := v.([]any); {
	case into.Kind() == reflect.String && isList && len(list) == 1:
		return list[0]
	case into.Kind() == reflect.Slice && !isList:
		return []any{v}
	}
	return v
}

// value decodes any value into the field that its key names.
func (d *decoder) value(v any, into reflect.Value, key string) {
	if strings.HasSuffix(key, ".listen") {
		v = listenValue(v, into)
		if list, more := v.([]any); more && into.Kind() == reflect.String {
			d.Fail(key, `is one address, and here are %d; write it like "127.0.0.1:8090"`, len(list))
			return
		}
	}
	switch into.Interface().(type) {
	case time.Duration:
		unit(d, v, into, key, parseDuration, `"%[1]vms", "%[1]vs" or "%[1]vm"`)
		return
	case Size:
		unit(d, v, into, key, parseSize, `"%[1]vB" or "%[1]vKiB"`)
		return
	case PerSecond:
		unit(d, v, into, key, parseRate, `"%[1]v/s" or "%[1]v/m"`)
		return
	case time.Time:
		d.instant(v, into, key)
		return
	case Origins:
		if text, ok := v.(string); ok {
			d.Fail(key, `%q is not a list of origins; write ["https://shop.example"], or [] for none`, text)
			return
		}
	}
	switch into.Kind() {
	case reflect.Struct:
		if tree, ok := d.one(v, key); ok {
			d.table(tree, into, key)
		}
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(v, into.Elem(), key)
	case reflect.Slice:
		d.list(v, into, key)
	case reflect.Map:
		d.mapping(v, into, key)
	default:
		d.scalar(v, into, key)
	}
}

// scalar decodes what needs no unit: text, a number, a boolean, or (into an interface) text, a whole number or a
// boolean.
func (d *decoder) scalar(v any, into reflect.Value, key string) {
	anything := into.Kind() == reflect.Interface
	switch v := v.(type) {
	case string:
		if anything || into.Kind() == reflect.String {
			text, _ := d.expanded(v, key)
			into.Set(reflect.ValueOf(text).Convert(into.Type()))
			return
		}
	case int64:
		if anything || into.Kind() == reflect.Int {
			into.Set(reflect.ValueOf(int(v)).Convert(into.Type()))
			return
		}
		if into.Kind() == reflect.Float64 {
			into.SetFloat(float64(v))
			return
		}
	case float64:
		if into.Kind() == reflect.Float64 {
			into.SetFloat(v)
			return
		}
	case bool:
		if anything || into.Kind() == reflect.Bool {
			into.Set(reflect.ValueOf(v))
			return
		}
	}
	d.mismatch(v, into, key)
}

// unit decodes a string with a unit, and says how to write one where a bare number stands.
func unit[T any](d *decoder, v any, into reflect.Value, key string, parse func(string) (T, error), like string) {
	switch v := v.(type) {
	case string:
		text, ok := d.expanded(v, key)
		if !ok {
			return
		}
		parsed, err := parse(text)
		if err != nil {
			d.Fail(key, "%v", err)
			return
		}
		into.Set(reflect.ValueOf(parsed))
	case int64, float64:
		d.Fail(key, "%[1]v has no unit; write "+like, v)
	default:
		d.mismatch(v, into, key)
	}
}

// instant rejects local times: the instances of a fleet may stand in different zones.
func (d *decoder) instant(v any, into reflect.Value, key string) {
	t, ok := v.(time.Time)
	switch {
	case !ok:
		if text, isText := v.(string); isText {
			d.Fail(key, "wants a time, not the string %q; write it without quotes, like 2026-11-11T00:00:00+08:00", text)
			return
		}
		d.mismatch(v, into, key)
	case strings.HasSuffix(t.Location().String(), "-local"):
		d.Fail(key, "needs a date, a time and an offset; write it like 2026-11-11T00:00:00+08:00")
	default:
		into.Set(reflect.ValueOf(t))
	}
}

// list decodes an array, or a repeated table. A default is replaced whole.
func (d *decoder) list(v any, into reflect.Value, key string) {
	var items []any
	switch v := v.(type) {
	case []any:
		items = v
	case []map[string]any:
		for _, t := range v {
			items = append(items, t)
		}
	case map[string]any:
		d.Fail(key, "may stand more than once; write [[%s]] for each", key)
		return
	default:
		if into.Type().Elem().Kind() == reflect.Struct {
			d.Fail(key, "wants tables, not %s; write [[%s]] for each", kindOf(v), key)
		} else {
			d.mismatch(v, into, key)
		}
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		at := into.Index(i)
		if p, ok := at.Addr().Interface().(presetter); ok {
			p.preset()
		}
		d.value(item, at, Element(key, i))
	}
}

func (d *decoder) mapping(v any, into reflect.Value, key string) {
	tree, ok := d.one(v, key)
	if !ok {
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		item := reflect.New(into.Type().Elem()).Elem()
		d.value(tree[name], item, joinKey(key, name))
		into.SetMapIndex(reflect.ValueOf(name), item)
	}
}

// one takes a table that may stand only once.
func (d *decoder) one(v any, key string) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case []map[string]any:
		d.Fail(key, "may stand only once; write [%s]", key)
	default:
		d.Fail(key, "wants a table, not %s; write %s = { ... }", kindOf(v), key[strings.LastIndexByte(key, '.')+1:])
	}
	return nil, false
}

func (d *decoder) expanded(text, key string) (string, bool) {
	text, err := expandVariables(text, d.env)
	if err != nil {
		d.Fail(key, "%v", err)
	}
	return text, err == nil
}

func (d *decoder) mismatch(v any, into reflect.Value, key string) {
	way := ""
	switch text, isText := v.(string); {
	case isText && into.Kind() == reflect.Slice:
		way = fmt.Sprintf("; write [%q]", text)
	case isText && (into.Kind() == reflect.Bool && (text == "true" || text == "false") || into.Kind() == reflect.Int &&
		digits(text)):
		way = "; write it without quotes"
	case into.Kind() == reflect.String && kindOf(v) == "a whole number" && strings.Contains(key, "listen"):
		way = fmt.Sprintf("; write \":%v\"", v) // a port
	case into.Kind() == reflect.String && (kindOf(v) == "a whole number" || kindOf(v) == "a boolean"):
		way = fmt.Sprintf("; write \"%v\"", v)
	}
	d.Fail(key, "wants %s, not %s%s", wanted(into), kindOf(v), way)
}

// kindOf says in plain words what the file holds.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a point"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date"
	case []any, []map[string]any:
		return "a list"
	}
	return "a table"
}

// kindOfKey tells a key from a table, for those who mistyped a [header].
func kindOfKey(v any) string {
	switch v.(type) {
	case map[string]any, []map[string]any:
		return "table"
	}
	return "key"
}

// wanted says in plain words, with an example where the form is not plain, what a field holds.
func wanted(into reflect.Value) string {
	switch into.Interface().(type) {
	case time.Duration:
		return `a duration like "10ms"`
	case Size:
		return `a size like "16KiB"`
	case PerSecond:
		return `a rate like "20/s"`
	case time.Time:
		return "a date like 2026-11-11T00:00:00+08:00"
	}
	switch into.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "a string, a whole number or a boolean"
}
