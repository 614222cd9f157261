// Package config turns a TOML file into a checked struct, and every mistake in the file into a line that
// names the file, the line, the key and a way out.
//
// The root file config.toml is the reference: the structs here have its shape and its names in CamelCase, and
// Default has its values. Reading is strict. An unknown key, a number without its unit, an unset ${VAR} and two
// keys that contradict each other are errors; none is ever ignored.
//
// No problem shows a password.
//
// It does not know what the values are for: it compiles no route and dials no address. What only another package can
// find wrong is brought back to its line by Errorf.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// maxText bounds a configuration file, in bytes; long lists belong in files of their own.
const maxText = 256 << 10

// Config is a whole, valid configuration. It is not changed after Load, so it may be shared.
type Config struct {
	Name      string    `toml:"name"` // of the shop in Redis; "" = nothing is kept there
	Mode      string    `toml:"mode" words:"enforce observe"`
	Watch     bool      `toml:"watch_config"` // read the file again when it changes
	Server    Server    `toml:"server"`
	Upstream  Upstream  `toml:"upstream"`
	Decide    []Decide  `toml:"decide"`
	Limits    Limits    `toml:"limits"`
	Routes    []Route   `toml:"route"` // in the order of the file: the first match wins
	Auth      Auth      `toml:"auth"`
	Stock     Stock     `toml:"stock"`
	Queue     Queue     `toml:"queue"`
	Sales     []Sale    `toml:"sale"`
	Rooms     []Room    `toml:"room"`
	Responses Responses `toml:"responses"`
	Admin     Admin     `toml:"admin"`
	Ops       Ops       `toml:"ops"`
	Fleet     Fleet     `toml:"fleet"`
	Log       Log       `toml:"log"`
	AccessLog AccessLog `toml:"access_log"`
	Cache     Cache     `toml:"cache"`
	Traces    Traces    `toml:"traces"`
	Settle    Settle    `toml:"settle"`

	file    string
	lines   keyLines
	version string
}

// Default is what an empty file would mean where no environment variable is set.
// It is not valid by itself: it has no targets and no routes.
func Default() *Config { return defaults(nil) }

// defaults asks env too, because the reference's default for the address of Redis does.
func defaults(env func(string) (string, bool)) *Config {
	return &Config{
		Mode:      "enforce",
		Watch:     true,
		Server:    defaultServer(),
		Upstream:  defaultUpstream(),
		Limits:    defaultLimits(),
		Auth:      defaultAuth(),
		Stock:     defaultStock(env),
		Queue:     defaultQueue(),
		Responses: defaultResponses(),
		Admin:     Admin{Listen: "127.0.0.1:8090"},
		Ops:       Ops{Listen: "127.0.0.1:8091", MetricsMaxSKUs: 100},
		Log:       Log{Level: "info"},
		AccessLog: AccessLog{Output: "stdout", RejectedPerSecond: 20, BufferSize: 8 << 20},
		Cache:     defaultCache(),
		Traces:    Traces{SampleRatio: 0.01},
		Settle:    defaultSettle(),
	}
}

// NoEnvironment looks up no variable. It is for configurations that no file holds: a REDIS_ADDR that is meant for other
// programs must not make them invalid.
func NoEnvironment(string) (string, bool) { return "", false }

// Rule is what only another package can check. Its errors come from Config.Errorf; it may be asked of a Config in which
// other values are wrong.
type Rule func(*Config) []error

// Load reads and checks the file at path. env looks up ${VAR} (os.LookupEnv; nil = nothing is set).
// Whatever is wrong, also with reaching the file, is a *Error.
func Load(path string, env func(string) (string, bool), rules ...Rule) (*Config, error) {
	text, err := readAnyFile(path, maxText) // at the start it may be a pipe; sluice run looks before it reads one again
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noFileError(path)
	}
	if err != nil {
		return nil, &Error{Problems: []Problem{{File: path, Message: "read: " + readCause(err) +
			"; write the path of a file that sluice may read"}}}
	}
	return Parse(path, text, env, rules...)
}

// Parse is Load for text that is already read. name is the file's name for messages, and the files that
// *_file keys name are found from its folder.
func Parse(name string, text []byte, env func(string) (string, bool), rules ...Rule) (*Config, error) {
	tree, err := parseTree(name, text)
	if err != nil {
		return nil, err
	}
	c := defaults(env)
	c.file, c.lines, c.version = name, indexKeys(string(text)), versionOf(text)

	d := decoder{report: report{File: name, Lines: c.lines}, env: env}
	d.table(tree, reflect.ValueOf(c).Elem(), "")
	c.Limits.Window.derive(c.lines)

	r := report{File: name, Lines: c.lines}
	c.check(&r)
	c.readSecrets(&r, filepath.Dir(name))
	c.Auth.readKeys(&r, filepath.Dir(name))
	c.Responses.readPages(&r, filepath.Dir(name))
	c.Limits.Bypassed = r.Networks("limits.bypass", c.Limits.Bypass)
	c.Limits.Denied = r.Networks("limits.deny", c.Limits.Deny)
	for _, rule := range rules {
		r.Add(rule(c))
	}
	r.Behind(d.report)
	if err := r.Err(); err != nil {
		return nil, err
	}
	c.version = c.fingerprint()
	return c, nil
}

// At is the place of a key such as "route[2].match": "config.toml:61", or where the key is not in the file,
// the place of the table around it, or else the file alone.
func (c *Config) At(key string) string {
	p := Problem{File: c.file, Line: c.lines.Near(key)}
	return strings.TrimSuffix(p.String(), ": ")
}

// Errorf makes a *Error at a key, for what only another package can find wrong with its value.
func (c *Config) Errorf(key, format string, args ...any) error {
	return c.ErrorsOf([]string{key}, func(string) string { return fmt.Sprintf(format, args...) })
}

// ErrorsOf is one error that says of each key what is wrong with it; nil without keys.
func (c *Config) ErrorsOf(keys []string, what func(key string) string) error {
	r := report{File: c.file, Lines: c.lines}
	for _, key := range keys {
		r.Fail(key, "%s", what(key))
	}
	return r.Err()
}

// parseTree judges the syntax of TOML.
func parseTree(name string, text []byte) (map[string]any, error) {
	if len(text) > maxText {
		return nil, &Error{Problems: []Problem{{File: name,
			Message: "is larger than 256KiB; keep long lists in files of their own"}}}
	}
	var tree map[string]any
	_, err := toml.Decode(string(text), &tree)
	if err == nil {
		return tree, nil
	}
	p := Problem{File: name, Message: strings.TrimPrefix(err.Error(), "toml: ")}
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		p.Line = min(max(syntax.Position.Line, 1), 1+strings.Count(string(text), "\n"))
		p.Key, p.Message = syntax.LastKey, plain(syntax.Message)
		if cut := cutTableName(syntax.Message); cut > 0 {
			p.Line, p.Key, p.Message = p.Line-cut+1, "", "the name of a table is not closed; write it like [stock] or [[route]]"
		}
		if first := firstOf(string(text), p.Line, p.Message); first > 0 {
			p.Message += fmt.Sprintf(": on line %d; %s", first,
				wayOutOfTwice(p.Message, lineOf(string(text), p.Line), lineOf(string(text), first)))
		} else if syntax.Position.Col > 0 {
			p.Message += fmt.Sprintf(" (column %d)", syntax.Position.Col)
		}
		if dateLine.MatchString(lineOf(string(text), p.Line)) {
			p.Message += "; write a time like 2026-11-11T00:00:00+08:00, with the offset and not the name of its zone"
		}
	}
	return nil, &Error{Problems: []Problem{p}}
}

// dateLine is a line whose value begins as a date does.
var dateLine = regexp.MustCompile(`=\s*\d{4}-\d\d-\d\d[Tt ]`)

// lineOf is a line of text; the first one has the number 1.
func lineOf(text string, n int) string {
	if lines := strings.Split(text, "\n"); n >= 1 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}

// cutTableName counts the lines that a table's name took which is not closed, by the parser's message; 0 = the message
// is another.
func cutTableName(message string) (lines int) {
	switch {
	case !strings.Contains(message, "end table name") && !strings.Contains(message, "end of table array name"):
		return 0
	case strings.Contains(message, `got '\n'`):
		return 2
	}
	return 1
}

// repeated are the tables that may stand several times.
var repeated = []string{"route", "decide", "sale", "room", "limits.rate", "limits.in_flight", "settle.home"}

// tableLine is a line that begins a table, with its name.
var tableLine = regexp.MustCompile(`^\s*(\[[\w.]+\])`)

// wayOutOfTwice is what to do about a key that stands twice, by the parser's message and the two lines.
func wayOutOfTwice(message, line, first string) string {
	for _, table := range repeated {
		if strings.Contains(message, "'"+table+"'") {
			return "write [[" + table + "]], with two brackets, on each of these lines"
		}
	}
	if table := tableLine.FindStringSubmatch(line); table != nil && !tableLine.MatchString(first) {
		return "keys with a dot above " + table[1] + " made it already: write them below it, without its name"
	}
	return "drop one of them"
}

// firstOf is the line on which the key stands first that the parser's message names as defined twice; 0 = the message
// is another, or it is not found.
func firstOf(text string, line int, message string) (first int) {
	found := regexp.MustCompile(`key '([^']+)' (?:has already been defined|was already created)`).FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	lines := strings.SplitAfter(text, "\n")
	for key, at := range indexKeys(strings.Join(lines[:min(line-1, len(lines))], "")) {
		if WithoutIndexes(key) == found[1] {
			first = max(first, at) // of repeated tables the last one is meant
		}
	}
	return first
}

// plain turns a message of the TOML parser, which may quote the file raw, into one line of ours, with the way
// out of the commonest slip.
func plain(message string) string {
	message = lowerFirst(strings.TrimSuffix(message, "."))
	message = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, message)
	if got := foreign.FindStringSubmatch(message); got != nil {
		if write, known := lookalikes[got[1]]; known {
			return message + "; write " + write + " in place of " + got[1]
		}
		return message + "; delete this character, or write a space: it only looks like one"
	}
	for _, slip := range slips {
		if strings.HasPrefix(message, slip.message) {
			return message + "; " + slip.wayOut
		}
	}
	return message
}

// foreign finds the character at which the parser stopped, where it is none of ASCII.
var foreign = regexp.MustCompile(`(?:got|found) '([^\x00-\x7f]|\\u[0-9a-f]{4})'`)

// lookalikes are what a Chinese keyboard or a word processor writes, and what TOML wants there.
var lookalikes = map[string]string{"“": `"`, "”": `"`, "‘": "'", "’": "'", "＂": `"`, "，": ",", "、": ",", "：": "=",
	"＝": "=", "【": "[", "】": "]", "［": "[", "］": "]", "＃": "#"}

// slips are the beginnings of the parser's messages, and the ways out.
var slips = []struct{ message, wayOut string }{
	{"expected value", "write one key a line, and text in quotes"},
	{"expected a top-level item", "write one key a line, and text in quotes"},
	{"expected '.' or '=', but got ':'", "the file is TOML and not YAML: write key = value, and text in quotes"},
	{"strings cannot contain newlines", "close the quotes on this line"},
	{"expected a comma (',') or array terminator", "write a comma between values, and ] at the end of the list"},
	{"invalid escape in string", `write two of \, or ' ' around the text`},
	{"invalid UTF-8 byte", "save the file as UTF-8, and not as GBK"},
}

func lowerFirst(s string) string {
	if s == "" || strings.HasPrefix(s, "TOML") {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// Version tells one configuration from another: 12 hex digits, the same on all instances of a shop (fingerprint).
func (c *Config) Version() string { return c.version }

func versionOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// HasGate reports whether any route has this gate.
func (c *Config) HasGate(gate string) bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Gate == gate })
}

// UsesLedger reports whether routes reserve units in Sluice's own ledger.
func (c *Config) UsesLedger() bool { return c.HasGate("reserve") }

// ReadsStock reports whether any route asks for the stock of its SKU: gate "check" or "reserve".
func (c *Config) ReadsStock() bool { return c.HasGate("check") || c.HasGate("reserve") }

// KeepsPages reports whether any route keeps responses of the upstream.
func (c *Config) KeepsPages() bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Cache > 0 })
}

// SaleNames lists the names of the sales.
func (c *Config) SaleNames() (names []string) {
	for i := range c.Sales {
		names = append(names, c.Sales[i].Name)
	}
	return names
}

// SKUsOnSale lists the SKUs that sales name, in the order of the file; a SKU of two sales comes twice.
func (c *Config) SKUsOnSale() (skus []string) {
	for i := range c.Sales {
		skus = append(skus, c.Sales[i].SKUs...)
	}
	return skus
}
