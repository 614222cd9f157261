package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// keyLines knows the line on which each key, table and array element begins. Keys are spelled as in Problem.Key.
// It is our own because the TOML decoder forgets the lines of all [[tables]] of a name but the last.
type keyLines map[string]int

// Near is the line of key, or else of the nearest table around it; 0 if the file has neither.
func (l keyLines) Near(key string) int {
	for key != "" {
		if n, ok := l[key]; ok {
			return n
		}
		key = parentKey(key)
	}
	return 0
}

// joinKey appends the name of a key to the path of its table, quoted where TOML would need quotes.
func joinKey(table, name string) string {
	name = toml.Key{name}.String()
	if table == "" {
		return name
	}
	return table + "." + name
}

// Element is the path of an array's i-th element, from 0 in the code and from 1 for people.
func Element(array string, i int) string {
	return fmt.Sprintf("%s[%d]", array, i+1)
}

// parentKey cuts the last name or the last [index] off a path. Quoted names may hold dots and brackets.
func parentKey(key string) string {
	cut, quoted := 0, false
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '.' || c == '['):
			cut = i
		}
	}
	return key[:cut]
}

// arrayIndex is the place in an array or in a repeated table.
var arrayIndex = regexp.MustCompile(`\[\d+\]`)

// WithoutIndexes is key without the [index] of each array, as the reference of all keys names it.
func WithoutIndexes(key string) string { return arrayIndex.ReplaceAllString(key, "") }

// indexKeys reads text, which the TOML decoder has accepted: here nothing is judged, only counted.
func indexKeys(text string) keyLines {
	s := scanner{text: text, line: 1, found: keyLines{}, sizes: map[string]int{}}
	s.document()
	return s.found
}

// table opens [a.b] or [[a.b]]. A name on the way that is an array of tables means its last element.
func (s *scanner) table() string {
	line := s.line
	s.pos++
	repeated := s.peek() == '['
	if repeated {
		s.pos++
	}
	names := s.key()
	path := s.descend("", names[:len(names)-1], line)
	path = joinKey(path, names[len(names)-1])
	s.skip("]")
	if repeated {
		s.skip("]")
		s.note(path, line)
		s.sizes[path]++
		path = Element(path, s.sizes[path]-1)
	}
	s.found[path] = line
	return path
}

// pair reads "a.b = value" inside the table at path.
func (s *scanner) pair(path string) {
	line := s.line
	names := s.key()
	if len(path) < maxPath {
		path = joinKey(s.descend(path, names[:len(names)-1], line), names[len(names)-1])
		s.found[path] = line
	}
	s.blank()
	s.skip("=")
	s.blank()
	s.value(path)
}

// descend walks from path along names, noting each table that is met for the first time.
func (s *scanner) descend(path string, names []string, line int) string {
	for _, name := range names {
		if len(path) >= maxPath {
			return path
		}
		path = s.last(joinKey(path, name))
		s.note(path, line)
	}
	return path
}

// last turns an array of tables into its last element, and leaves any other path alone.
func (s *scanner) last(path string) string {
	if n := s.sizes[path]; n > 0 {
		return Element(path, n-1)
	}
	return path
}

// note keeps the first line of a path.
func (s *scanner) note(path string, line int) {
	if _, ok := s.found[path]; !ok {
		s.found[path] = line
	}
}

// maxPath bounds a path, in bytes. What is nested deeper counts for what is around it: no key of ours is so deep,
// and paths of a hostile nesting would take the square of the file's size.
const maxPath = 1000

// value reads any value. Elements of arrays and keys of inline tables get lines of their own.
func (s *scanner) value(path string) {
	switch s.peek() {
	case '[':
		s.pos++
		for i := 0; ; i++ {
			s.space()
			if s.done() || s.peek() == ']' {
				break
			}
			at := path
			if len(path) < maxPath {
				at = Element(path, i)
				s.found[at] = s.line
			}
			s.value(at)
			s.comma()
		}
		s.skip("]")
	case '{':
		s.pos++
		for {
			s.space()
			if s.done() || s.peek() == '}' {
				break
			}
			s.pair(path)
			s.comma()
		}
		s.skip("}")
	case '"', '\'':
		s.quoted()
	default:
		s.bare()
	}
}

// unquote reads a quoted name by the decoder's own rules for escapes.
func unquote(quoted string) string {
	var one struct{ K string }
	if _, err := toml.Decode("K = "+quoted, &one); err != nil {
		return strings.Trim(quoted, `"'`)
	}
	return one.K
}

// scanner walks over TOML text that is known to be valid and keeps count of lines.
// On text that is not valid it stops early or counts wrong, but always ends.
type scanner struct {
	text  string
	pos   int
	line  int            // of pos, from 1
	found keyLines       // every path so far
	sizes map[string]int // elements so far of each array of tables
}

func (s *scanner) document() {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\xef\xbb\xbf"} {
		s.text = strings.TrimPrefix(s.text, mark)
	}
	path := ""
	for s.space(); !s.done(); s.space() {
		before := s.pos
		if s.peek() == '[' {
			path = s.table()
		} else {
			s.pair(path)
		}
		if s.pos == before {
			s.pos++
		}
	}
}

func (s *scanner) done() bool { return s.pos >= len(s.text) }

// peek is the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.done() {
		return 0
	}
	return s.text[s.pos]
}

// next takes one byte.
func (s *scanner) next() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.pos++
	return c
}

// skip takes token if it comes next, after blanks.
func (s *scanner) skip(token string) {
	s.blank()
	if strings.HasPrefix(s.text[min(s.pos, len(s.text)):], token) {
		s.pos += len(token)
	}
}

// blank skips blanks on one line.
func (s *scanner) blank() {
	for c := s.peek(); c == ' ' || c == '\t'; c = s.peek() {
		s.pos++
	}
}

// space skips blanks, comments and ends of lines.
func (s *scanner) space() {
	for !s.done() {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.next()
		case '#':
			for !s.done() && s.peek() != '\n' {
				s.pos++
			}
		default:
			return
		}
	}
}

// comma goes to what follows an element: past a comma, or to the closing bracket. It always moves or stops at one.
func (s *scanner) comma() {
	s.space()
	switch s.peek() {
	case ',':
		s.pos++
	case ']', '}':
	default:
		s.next()
	}
}

// key reads a.b."c d" and stops behind it. There is always at least one name.
func (s *scanner) key() []string {
	var names []string
	for {
		s.blank()
		names = append(names, s.name())
		s.blank()
		if s.peek() != '.' {
			return names
		}
		s.pos++
	}
}

func (s *scanner) name() string {
	start := s.pos
	if c := s.peek(); c == '"' || c == '\'' {
		s.quoted()
		return unquote(s.text[start:min(s.pos, len(s.text))])
	}
	for !s.done() && strings.IndexByte(" \t\r\n.=]#", s.peek()) < 0 {
		s.pos++
	}
	return s.text[start:s.pos]
}

// quoted reads a string of any of the four kinds.
func (s *scanner) quoted() {
	quote := s.peek()
	triple := strings.Repeat(string(quote), 3)
	if strings.HasPrefix(s.text[s.pos:], triple) {
		s.pos += 3
		s.until(triple, quote)
		for range 2 { // up to two quotes may stand before the closing three
			if s.peek() == quote {
				s.pos++
			}
		}
		return
	}
	s.pos++
	s.until(string(quote), quote)
}

// until reads to the end of a string, over escapes where the quote allows them.
func (s *scanner) until(end string, quote byte) {
	for !s.done() {
		if strings.HasPrefix(s.text[s.pos:], end) {
			s.pos += len(end)
			return
		}
		if s.next() == '\\' && quote == '"' {
			s.next()
		}
	}
}

// bare reads a number, a boolean or a date.
func (s *scanner) bare() {
	for !s.done() && strings.IndexByte(",]}#\n", s.peek()) < 0 {
		s.pos++
	}
}
