package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written "512B" "16KiB" "1MiB" "2GiB"; at most 1 TiB.
type Size int64

// String renders the size with the largest unit that leaves a whole number.
func (s Size) String() string {
	switch {
	case s >= 1<<30 && s%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", int64(s>>30))
	case s >= 1<<20 && s%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", int64(s>>20))
	case s >= 1<<10 && s%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", int64(s>>10))
	}
	return fmt.Sprintf("%dB", int64(s))
}

// PerSecond is a rate in events a second, always above 0, written "20/s" "600/m" "0.5/s" "100/h" "5/d".
type PerSecond float64

// String is the rate with the shortest unit in which it is a whole number, or else in a second.
func (r PerSecond) String() string {
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}} {
		if n := float64(r) * u.seconds; n >= 1 && math.Abs(n-math.Round(n)) < 1e-9*n {
			return strconv.FormatFloat(math.Round(n), 'f', -1, 64) + "/" + u.name
		}
	}
	return strconv.FormatFloat(float64(r), 'g', -1, 64) + "/s"
}

// Secret is a password or token. It prints as "(secret)" wherever it ends up; string(s) is the value.
type Secret string

// String hides the value.
func (s Secret) String() string { return "(secret)" }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return "(secret)" }

// MarshalText hides the value from encoders and loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

const maxSize = 1 << 40

func parseSize(text string) (Size, error) {
	units := []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := parseDecimal(number)
		if err != nil || n*u.bytes > maxSize || n*u.bytes != math.Trunc(n*u.bytes) {
			break
		}
		return Size(n * u.bytes), nil
	}
	if digits(text) {
		return 0, fmt.Errorf(`%q has no unit; write "%sB", "16KiB" or "1MiB"`, text, text)
	}
	if number := strings.TrimRight(text, "kK"); digits(number) && len(text) == len(number)+1 {
		return 0, fmt.Errorf(`%q is not a size; write "%sKiB"`, text, number)
	}
	return 0, fmt.Errorf(`%q is not a size; write it like "512B", "16KiB" or "1MiB"`, text)
}

func parseRate(text string) (PerSecond, error) {
	number, unit, ok := strings.Cut(text, "/")
	if !ok && digits(text) {
		return 0, fmt.Errorf(`%q has no unit; write "%s/s" or "%s/m"`, text, text, text)
	}
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	n, err := parseDecimal(number)
	if err != nil || seconds == 0 || n > 1e9 {
		return 0, fmt.Errorf(`%q is not a rate; write it like "20/s", "600/m", "100/h" or "5/d"`, text)
	}
	if n == 0 {
		return 0, errors.New("a rate of 0 rejects every request; write a larger one")
	}
	return PerSecond(n / seconds), nil
}

func parseDuration(text string) (time.Duration, error) {
	if digits(text) {
		return 0, fmt.Errorf(`%[1]q has no unit; write "%[1]sms", "%[1]ss" or "%[1]sm"`, text)
	}
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok && digits(days) {
		return 0, fmt.Errorf(`%q is not a duration; write days as hours, like "24h"`, text)
	}
	if plain := plainDuration(text); plain != "" {
		return 0, fmt.Errorf(`%q is not a duration; write %q`, text, plain)
	}
	return 0, fmt.Errorf(`%q is not a duration; write it like "10ms", "1s" or "1m30s"`, text)
}

// plainDuration is a whole number and a unit in words, such as 2 seconds, as it is written here; "" = it is neither.
func plainDuration(text string) string {
	word := strings.TrimLeft(text, "0123456789")
	number, unit := strings.TrimSuffix(text, word), strings.TrimSpace(word)
	for short, long := range map[string]string{"ms": "millisecond", "s": "second", "m": "minute", "h": "hour"} {
		if strings.TrimSuffix(unit, "s") == long {
			unit = short
		}
	}
	if _, err := time.ParseDuration(number + unit); err != nil || number == "" {
		return ""
	}
	return number + unit
}

// parseDecimal reads digits with at most one point: no sign, exponent, hexadecimal, "inf" or "nan".
func parseDecimal(text string) (float64, error) {
	if !digits(strings.Replace(text, ".", "", 1)) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

func digits(text string) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}
