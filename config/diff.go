package config

import "reflect"

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
