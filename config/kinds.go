package config

import (
	"reflect"
	"time"
)

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
