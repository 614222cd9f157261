package page

import (
	"slices"
	"strings"
)

// place is where in a page a piece of a template ends. It is compared: both branches of an {{if}} must end in the same.
type place struct {
	at      spot
	cut     bool   // in a tag: a name ended here, white space must follow
	quote   byte   // of an attribute's value
	lead    string // what such an address begins with
	element string // whose tag this is; or whose text, where that is no HTML
	attr    string
	closing bool // the tag is one like </p>
	script  script
}

type spot uint8

const (
	inText spot = iota
	inComment
	inDeclaration // <!doctype …
	inTagName
	inTag // between attributes
	inAttrName
	afterAttrName
	beforeValue
	inQuotes
	inBareValue
	inRaw // the text of a script, style, title or textarea
)

// follow goes on through text, and gives what of it belongs into the page: all but comments. An odd end is one that another
// piece could turn into something else.
func (p *place) follow(text string) (kept string, odd bool) {
	var b strings.Builder
	for i := 0; i < len(text); {
		n, keep := p.step(text[i:])
		if n == 0 {
			return "", true
		}
		if keep {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String(), false
}

// step goes on by some bytes of s; by none where s ends too early to tell.
func (p *place) step(s string) (n int, keep bool) {
	c := s[0]
	switch p.at {
	case inText:
		return p.stepText(s)
	case inComment:
		if strings.HasPrefix(s, "-->") {
			*p = place{}
			return 3, false
		}
		return 1, false
	case inDeclaration:
		if c == '>' {
			*p = place{}
		}
	case inTagName:
		if isSpace(c) || c == '/' || c == '>' {
			p.at = inTag
			return p.step(s)
		}
		p.element = grown(p.element, c)
	case inTag:
		return p.stepTag(s)
	case inAttrName:
		if c == '=' || isSpace(c) || c == '/' || c == '>' {
			p.at = afterAttrName
			return p.step(s)
		}
		p.attr = grown(p.attr, c)
	case afterAttrName:
		switch {
		case c == '=':
			p.at = beforeValue
		case !isSpace(c):
			p.at, p.attr = inTag, ""
			return p.step(s)
		}
	case beforeValue:
		switch {
		case c == '"' || c == '\'':
			p.at, p.quote = inQuotes, c
		case c == '>':
			p.at, p.attr = inTag, ""
			return p.step(s)
		case !isSpace(c):
			p.at = inBareValue
		}
	case inQuotes:
		if c == p.quote {
			p.at, p.attr, p.lead, p.quote, p.cut = inTag, "", "", 0, true
		} else if isAddress(p.attr) && c > ' ' { // browsers pass over white space
			p.lead = grown(p.lead, c)
		}
	case inBareValue:
		if isSpace(c) || c == '>' {
			p.at, p.attr = inTag, ""
			return p.step(s)
		}
	case inRaw:
		return p.stepRaw(s)
	}
	return 1, true
}

func (p *place) stepText(s string) (n int, keep bool) {
	switch {
	case s[0] != '<':
	case len(s) == 1, s == "</", s == "<!", s == "<!-":
		return 0, false
	case strings.HasPrefix(s, "<<!--"), strings.HasPrefix(s, "</<!--"): // what is behind the comment would make it a tag
		return 0, false
	case strings.HasPrefix(s, "<!--"):
		p.at = inComment
		return 4, false
	case s[1] == '!' || s[1] == '?':
		p.at = inDeclaration
	case isLetter(s[1]):
		p.at = inTagName
	case s[1] == '/' && isLetter(s[2]):
		p.at, p.closing = inTagName, true
		return 2, true
	}
	return 1, true
}

func (p *place) stepTag(s string) (n int, keep bool) {
	c := s[0]
	switch {
	case c == '>' && !p.closing && isRaw(p.element):
		*p = place{at: inRaw, element: p.element, script: script{slash: begins}}
	case c == '>':
		*p = place{}
	case isSpace(c) || c == '/':
		p.cut = false
	case p.cut:
		return 0, false
	default:
		p.at, p.attr = inAttrName, grown("", c)
	}
	return 1, true
}

func (p *place) stepRaw(s string) (n int, keep bool) {
	end := "</" + p.element
	switch {
	case s[0] != '<':
	case len(s) > len(end) && strings.EqualFold(s[:len(end)], end) && (isSpace(s[len(end)]) || s[len(end)] == '/' || s[len(end)] == '>'):
		*p = place{at: inTagName, closing: true}
		return 2, true
	case len(s) > 1 && len(s) <= len(end) && strings.EqualFold(s, end[:len(s)]):
		return 0, false
	}
	if p.element == "script" {
		return p.script.step(s), true
	}
	return 1, true
}

// between is the place at an action: a name that it cuts has ended.
func (p place) between() place {
	switch p.at {
	case inTagName, inAttrName, afterAttrName:
		p.at, p.attr, p.cut = inTag, "", true
	}
	return p
}

// joined is where a page goes on after either of two branches; they must end alike.
func joined(a, b place) (both place, alike bool) {
	a, b = a.between(), b.between()
	if a.cut != b.cut {
		a.cut, b.cut = true, true
	}
	if a.lead != b.lead {
		lead := undecided
		if a.leads() && b.leads() {
			lead = "/"
		}
		a.lead, b.lead = lead, lead
	}
	if a.script.slash != b.script.slash {
		a.script.slash, b.script.slash = unsure, unsure
	}
	return a, a == b
}

// undecided is the lead of an address that begins in more than one way.
const undecided = "&"

// leads reports whether an address has begun so that what follows cannot make it a script: as a path, a query, or with the
// scheme of a page.
func (p *place) leads() bool {
	i := strings.IndexAny(p.lead, ":/?#&")
	return i >= 0 && (strings.IndexByte("/?#", p.lead[i]) >= 0 || slices.Contains([]string{"http:", "https:", "mailto:", "tel:"}, p.lead[:i+1]))
}

func isRaw(element string) bool {
	switch element {
	case "script", "style", "title", "textarea":
		return true
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// grown is a name with one letter more; what is longer than any that matters is cut off.
func grown(name string, c byte) string {
	if len(name) >= 32 {
		return name
	}
	return name + strings.ToLower(string([]byte{c}))
}
