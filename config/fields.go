package config

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// checkFields checks each value by the tag of its field: words:"reject allow" are the words that it may be, and range
// is "1 to 64", "above 0s" or "0s or more", with units as in a file.
func (c *Config) checkFields(r *report) {
	walk(reflect.ValueOf(c).Elem(), "", func(key string, tag reflect.StructTag, v reflect.Value) {
		if words := tag.Get("words"); words != "" {
			r.OneOf(key, v.String(), strings.Fields(words)...)
		}
		low, high, _ := strings.Cut(tag.Get("range"), " to ")
		switch x := v.Interface().(type) {
		case time.Duration:
			switch low {
			case "above 0s":
				r.Positive(key, x)
			case "0s or more":
				r.NotNegative(key, x)
			default:
				checkRange(r, key, x, low, high, parseDuration)
			}
		case Size:
			checkRange(r, key, x, low, high, parseSize)
		case int:
			checkRange(r, key, x, low, high, parseCount)
		case float64:
			checkRange(r, key, x, low, high, parseDecimal)
		}
	})
}

// checkRange wants a value from low to high; low "" = it has no such range.
func checkRange[T cmp.Ordered](r *report, key string, value T, low, high string, parse func(string) (T, error)) {
	if low == "" {
		return
	}
	from, fault := parse(low)
	to, fault2 := parse(high)
	if fault != nil || fault2 != nil {
		panic("BUG: " + key + " has a range that cannot be read: " + low + " to " + high)
	}
	between(r, key, value, from, to)
}

// most is the most of anything that is counted.
const most = 1 << 30

func parseCount(text string) (int, error) {
	if text == "most" {
		return most, nil
	}
	return strconv.Atoi(text)
}
