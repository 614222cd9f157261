package config

import "strings"

// scanner walks over TOML text that is known to be valid and keeps count of lines.
// On text that is not valid it stops early or counts wrong, but always ends.
type scanner struct {
	text  string
	pos   int
	line  int            // of pos, from 1
	found lines          // every path so far
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
