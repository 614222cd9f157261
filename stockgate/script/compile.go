package script

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice/stockgate/key"
	"sluice/stockgate/redisconn"
)

// Definition is [stock.script]. What it leaves out is the preset's.
type Definition struct {
	Preset     string            // or File
	File       string            // the name of the shop's script, whose text is Take
	Prefix     string            // before every key
	Keys       []string          // templates: KEYS
	Args       []string          // templates: ARGV
	Codes      map[string]string // what the script returns, and what that means
	GiveBack   string            // "" = the preset's; "none"; another preset's name; or a file whose text is Back
	Take, Back string            // Lua
	Repeatable bool              // of File: a second run with the same keys and arguments takes nothing more
}

// None says that units are not given back: the shop does that itself.
const None = "none"

// Fault is what is wrong with one key of [stock.script].
type Fault struct {
	Key string
	Err error
}

func (f *Fault) Error() string { return "stock.script." + f.Key + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Script is a compiled Definition. It is immutable.
type Script struct {
	name       string // for logs and metrics
	preset     bool
	taking     lua
	givingBack *lua // nil = units are not given back
	keys, args []key.Template
	texts      []key.Named // of keys
	prefix     string
	parts      int     // of the SKU, that the first key names
	named      [5]bool // which of names keys and arguments have
	codes      codes
	repeatable bool
	promise    Promise
	faults     []*Fault // while it is compiled
}

// Compile reads d, and tells all that is wrong with it. Whether a cluster has all keys in one slot OneSlot tells.
func Compile(d Definition) (*Script, []*Fault) {
	s := &Script{prefix: d.Prefix, repeatable: d.Repeatable}
	var p preset
	switch {
	case d.Preset != "" && d.File != "":
		s.fault("file", "stands beside preset; drop one of them")
	case d.Preset != "":
		p = s.usePreset(&d)
	case d.File == "":
		s.fault("preset", "is missing; write one of %s, or file = \"take.lua\"", strings.Join(presetNames(), ", "))
	default:
		s.name, s.taking = filepath.Base(d.File), newLua(filepath.Base(d.File), d.Take)
		if len(d.Codes) == 0 {
			s.fault("codes", "is missing; write what the script returns, like { 1 = \"taken\", 0 = \"sold_out\" }")
		}
		if d.GiveBack == "" {
			s.fault("release", "is missing; write the file of a script that gives units back, or \"none\"")
		}
	}
	if len(s.faults) > 0 {
		return nil, s.faults
	}
	s.compileKeys(d.Keys, p)
	for i, text := range d.Args {
		s.args = append(s.args, s.template("args", i, "", text, names()...))
	}
	var errs []error
	s.codes, errs = compileCodes(d.Codes)
	for _, err := range errs {
		s.fault("codes", "%w", err)
	}
	s.compileBack(d)
	if len(s.faults) > 0 {
		return nil, s.faults
	}
	return s, nil
}

// usePreset fills what d leaves out.
func (s *Script) usePreset(d *Definition) preset {
	p, err := readPreset(d.Preset)
	if err != nil {
		s.fault("preset", "%w; write one of %s", err, strings.Join(presetNames(), ", "))
		return p
	}
	if d.Repeatable {
		s.fault("idempotent", "is for a script of the shop's own; drop it")
	}
	for name, n := range map[string]struct{ given, least, most int }{
		"keys": {len(d.Keys), len(p.Keys), p.MaxKeys}, "args": {len(d.Args), len(p.Args), p.MaxArgs},
	} {
		most := max(n.least, n.most)
		if n.given > 0 && (n.given < n.least || n.given > most) {
			s.fault(name, "has %d, and preset %q takes %s: docs/scripts.md has them", n.given, d.Preset, fromTo(n.least, most))
		}
	}
	if p.MaxKeys > 0 && len(d.Keys) == p.MaxKeys && len(d.Args) < p.MaxArgs {
		s.fault("args", "has %d, and preset %q with %d keys takes %d", len(d.Args), d.Preset, p.MaxKeys, p.MaxArgs)
	}
	if len(d.Keys) == 0 {
		d.Keys = p.Keys
	}
	if len(d.Args) == 0 {
		d.Args = p.Args
	}
	if len(d.Codes) > 0 {
		s.fault("codes", "are those of preset %q; drop them", d.Preset)
	}
	d.Codes = p.Codes
	if d.GiveBack == "" {
		d.GiveBack = d.Preset
	}
	s.name, s.preset, s.taking, s.repeatable, s.promise = d.Preset, true, luaOf(p.File), p.Repeatable, p.Promise
	return p
}

func fromTo(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// compileKeys wants a first key that differs from SKU to SKU, and the names that a preset needs in each of its keys.
func (s *Script) compileKeys(texts []string, p preset) {
	if len(texts) == 0 {
		s.fault("keys", "is missing; write the keys that the script works on, like [\"seckill:stock:$sku\"]")
	}
	for i, text := range texts {
		t, at := s.template("keys", i, s.prefix, text, names()[:namesOfKeys]...), element("keys", i)
		if i == 0 {
			s.parts = t.Parts()
		}
		if n := t.Parts(); n > s.parts {
			s.fault("keys", "%s %q names part %d of the SKU, and the first key does not", at, text, n)
		}
		s.keys, s.texts = append(s.keys, t), append(s.texts, key.Named{Name: at, Text: text})
		wanted := key.Template{}
		if i < len(p.Keys) {
			wanted, _ = key.Compile("", "", p.Keys[i], names()...)
		}
		switch {
		case t == nil: // it has a fault already
		case (i == 0 || wanted.Named()) && !t.Named():
			s.fault("keys", "%s %q has no $sku: all SKUs would share it; write it like \"seckill:stock:$sku\"", at, text)
		case (i == 0 || wanted.Holds(serialName)) && !t.Tells(s.parts):
			s.fault("keys",
				"%s %q: several SKUs would share it; name all parts from $sku_1 to $sku_%d with colons or braces between "+
					"them, or $sku", at, text, s.parts)
		case wanted.Holds(serialName) && !t.Holds(serialName):
			s.fault("keys", "%s %q has no $serial: all orders would share it; write it like %q", at, text, p.Keys[i])
		case slices.Contains(texts[:i], text):
			s.fault("keys", "%s %q is there twice", at, text)
		}
	}
}

func element(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i+1) }

// template compiles one of a list.
func (s *Script) template(list string, i int, prefix, text string, known ...string) key.Template {
	t, err := key.Compile(element(list, i), prefix, text, known...)
	if err != nil {
		s.fault(list, "%w", err)
	} else if text == "" && list == "keys" {
		s.fault(list, "%s is empty", element(list, i))
	}
	for name := range s.named {
		s.named[name] = s.named[name] || t.Holds(name)
	}
	return t
}

// compileBack finds the script that gives back.
func (s *Script) compileBack(d Definition) {
	switch {
	case d.GiveBack == None:
	case d.Back != "":
		back := newLua(filepath.Base(d.GiveBack), d.Back)
		s.givingBack = &back
	default:
		p, err := readPreset(d.GiveBack)
		if err != nil {
			s.fault("release", "%w; write a file that ends in .lua, the name of a preset, or \"none\"", err)
			return
		}
		back := luaOf(p.GiveBack)
		s.givingBack = &back
	}
}

func (s *Script) fault(name, format string, args ...any) {
	s.faults = append(s.faults, &Fault{name, fmt.Errorf(format, args...)})
}

// ErrApart is the cause when a cluster may have the keys of one call on different servers.
var ErrApart = key.ErrApart

// OneSlot is the error for keys of one call that a cluster may have in several slots. It names those that would work.
func (s *Script) OneSlot() error {
	return key.OneSlot(s.prefix, s.texts, redisconn.Tag, names()[:namesOfKeys]...)
}

// Name is the preset's, or that of the shop's file.
func (s *Script) Name() string { return s.name }

// Promise is what a preset keeps; false for a script of the shop's own.
func (s *Script) Promise() (Promise, bool) { return s.promise, s.preset }

// NeedsUser tells whether the script takes for known users alone.
func (s *Script) NeedsUser() bool { return s.named[userName] }

// Keys are those of one SKU that do not name an order or a user.
func (s *Script) Keys(sku string) (all []string) {
	for _, t := range s.keys {
		if !t.Holds(serialName) && !t.Holds(userName) {
			all = append(all, t.Of(sku, s.parts, make([]string, namesOfKeys)...))
		}
	}
	return all
}

// Templates are the keys as they are configured, without the prefix.
func (s *Script) Templates() (all []string) {
	for _, t := range s.texts {
		all = append(all, t.Text)
	}
	return all
}

// Texts are the scripts that Redis is to know: that which takes, and that which gives back where there is one.
func (s *Script) Texts() []string {
	if s.givingBack == nil {
		return []string{s.taking.text}
	}
	return []string{s.taking.text, s.givingBack.text}
}
