package page

import (
	"slices"
	"strings"
)

// script is where in a script a piece of it ends: only in code and in quotes can a value be shown.
type script struct {
	state scriptState
	slash slash
}

type scriptState uint8

const (
	inCode scriptState = iota
	inDouble
	inSingle
	inBackquotes
	inLineComment
	inBlockComment
	inPattern // a regular expression
	inPatternSet
	lost // what follows cannot be told without understanding the language
)

// slash is what a / would be in code.
type slash uint8

const (
	begins  slash = iota // a regular expression
	divides              // a sign
	unsure
)

// Words behind which a value comes, and a / begins a regular expression.
var beforeValues = []string{"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "instanceof", "do", "else", "await", "yield"}

// step goes on by some bytes of s; by none where s ends too early to tell.
func (j *script) step(s string) int {
	c := s[0]
	switch j.state {
	case inCode:
		return j.stepCode(s)
	case inDouble:
		return j.stepUntil(s, '"', inCode)
	case inSingle:
		return j.stepUntil(s, '\'', inCode)
	case inPattern:
		if c == '[' {
			j.state = inPatternSet
			return 1
		}
		return j.stepUntil(s, '/', inCode)
	case inPatternSet:
		return j.stepUntil(s, ']', inPattern)
	case inBackquotes:
		switch {
		case strings.HasPrefix(s, "${"):
			j.state = lost
		case s == "$", s == `\`:
			return 0
		case c == '\\':
			return 2
		case c == '`':
			j.state, j.slash = inCode, divides
		}
	case inLineComment:
		if c == '\n' || c == '\r' {
			j.state = inCode
		}
	case inBlockComment:
		switch {
		case s == "*":
			return 0
		case strings.HasPrefix(s, "*/"):
			j.state = inCode
			return 2
		}
	}
	return 1
}

// stepUntil goes on to what ends a string or a pattern; both end with their line at the latest.
func (j *script) stepUntil(s string, end byte, then scriptState) int {
	switch c := s[0]; {
	case s == `\`:
		return 0
	case c == '\\':
		return 2
	case c == '\n':
		j.state = lost
	case c == end:
		j.state, j.slash = then, divides
	}
	return 1
}

func (j *script) stepCode(s string) int {
	switch c := s[0]; {
	case c == '"':
		j.state = inDouble
	case c == '\'':
		j.state = inSingle
	case c == '`':
		j.state = inBackquotes
	case strings.HasPrefix(s, "<!--"), strings.HasPrefix(s, "-->"):
		j.state = lost // an old way to write a comment
	case c == '/':
		return j.stepSlash(s)
	case isSpace(c):
	case isWord(c):
		n := 1
		for n < len(s) && isWord(s[n]) {
			n++
		}
		if j.slash = divides; slices.Contains(beforeValues, s[:n]) {
			j.slash = begins
		}
		return n
	case c == ')' || c == ']':
		j.slash = divides
	case c == '}', c == '+', c == '-':
		j.slash = unsure
	default:
		j.slash = begins
	}
	return 1
}

func (j *script) stepSlash(s string) int {
	switch {
	case len(s) == 1:
		return 0
	case s[1] == '/':
		j.state = inLineComment
		return 2
	case s[1] == '*':
		j.state = inBlockComment
		return 2
	case j.slash == begins:
		j.state = inPattern
	case j.slash == unsure:
		j.state = lost
	default:
		j.slash = begins
	}
	return 1
}

func isWord(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
