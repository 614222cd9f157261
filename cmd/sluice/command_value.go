package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is the field of a struct that a flag or an argument sets.
type value struct {
	to          reflect.Value
	enum        []string // what it may be; nil = anything
	placeholder string
	first       string // the default
	file        bool   // names a file that must be there
	required    bool
	whole       bool // of a list: a comma is part of its words
}

func newValue(tag reflect.StructTag, to reflect.Value) *value {
	_, required := tag.Lookup("required")
	v := &value{to: to, enum: listed(tag.Get("enum")), placeholder: tag.Get("placeholder"), first: tag.Get("default"), file: tag.Get("type") == "existingfile", required: required, whole: tag.Get("sep") == "none"}
	if v.first != "" {
		if err := v.Set(v.first); err != nil {
			panic("BUG: a default that is none: " + err.Error())
		}
	}
	return v
}

// Set is of pflag.Value.
func (v *value) Set(text string) error {
	if v.enum != nil && !slices.Contains(v.enum, text) {
		return fmt.Errorf("%q: it must be %s", text, either(v.choices()))
	}
	if v.file {
		if info, err := os.Stat(text); err != nil {
			return err
		} else if info.IsDir() {
			return fmt.Errorf("%s is a folder", text)
		}
	}
	to := v.to
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	var err error
	switch p := to.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = append(*p, v.parts(text)...)
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q: it must be true or false", text)
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
	case *int64:
		if *p, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is no time: write it like 500ms, 90s or 10m", text)
		}
	default:
		panic(fmt.Sprintf("BUG: no command line sets a %T", p))
	}
	return nil
}

// String is of pflag.Value.
func (v *value) String() string { return "" }

// Type is of pflag.Value: what stands for it in the help.
func (v *value) Type() string {
	kind := v.to.Type()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case v.placeholder != "" && kind.Kind() == reflect.Slice && !v.whole:
		return v.placeholder + ",…"
	case v.placeholder != "":
		return v.placeholder
	case v.enum != nil:
		return strings.Join(v.choices(), "|")
	case kind == reflect.TypeFor[time.Duration]():
		return "TIME"
	case kind.Kind() == reflect.Int || kind.Kind() == reflect.Int64:
		return "N"
	}
	return "TEXT"
}

func (v *value) isSwitch() bool { return v.to.Kind() == reflect.Bool }

// parts are the words of a list: with commas, or the flag said again.
func (v *value) parts(text string) []string {
	if v.whole {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// choices are what it may be, but for nothing at all.
func (v *value) choices() []string {
	return slices.DeleteFunc(slices.Clone(v.enum), func(s string) bool { return s == "" })
}

// either is "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
