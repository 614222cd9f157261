package param

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/internal/octets"
)

// header stands for http before a name in quotes: $header("X-User").
const header = "header"

// parseQuoted parses $form("order[sku_id]") or $json("a.b".c), where text follows the "$". Quotes are " or '. ok is
// false where text is no such reference.
func parseQuoted(text string) (p Part, rest string, ok bool, err error) {
	end := nameEnd(text, "")
	word := text[:end]
	inside, open := strings.CutPrefix(text[end:], "(")
	if !open || word == "" {
		return p, text, false, nil
	}
	if p.kind = prefixes[word]; word == header {
		p.kind = Header
	} else if right := foreignPrefixes[word]; right != "" {
		return p, text, true, fmt.Errorf("$%s(: unknown variable; write $%s(\"x\")", word, right)
	}
	switch p.kind {
	case Literal:
		return p, text, false, nil
	case Path:
		return p, text, true, fmt.Errorf("$%s(: names in a pattern have letters, digits and _ alone; write $path_sku", word)
	}
	keys, rest, err := p.cutNames(inside, word)
	if err != nil {
		return p, text, true, err
	}
	if p.name = keys[0]; p.kind == JSON {
		p.name, p.keys = strings.Join(keys, "."), keys
	}
	p.text = "$" + text[:len(text)-len(rest)]
	return p, rest, true, p.checkName()
}

// cutNames cuts the names in parentheses off text, and the closing one: of JSON one for each object on the way, also
// without quotes, of others one.
func (p *Part) cutNames(text, word string) (names []string, rest string, err error) {
	rest = text
	for {
		var name string
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			var closed bool
			if name, rest, closed = strings.Cut(rest[1:], rest[:1]); !closed {
				return nil, text, fmt.Errorf(`"$%s(%.32s": a quote is not closed; write it like $%[1]s("x")`, word, text)
			}
		} else if p.kind == JSON {
			end := nameEnd(rest, "-")
			if strings.HasPrefix(rest, anyElement) {
				end = len(anyElement)
			}
			name, rest = rest[:end], rest[end:]
		}
		if name == "" {
			inside, _, _ := strings.Cut(text, ")")
			return nil, text, fmt.Errorf(`"$%s(%.32s)": a name stands in quotes; write it like $%[1]s("%[3]s")`, word, inside,
				orElse(strings.Trim(inside, `"'. `), "x"))
		}
		names = append(names, name)
		if p.kind != JSON || !strings.HasPrefix(rest, ".") {
			break
		}
		rest = rest[1:]
	}
	if closed := strings.HasPrefix(rest, ")"); closed {
		return names, rest[1:], nil
	}
	way := ""
	if p.kind == JSON {
		way = `, and $json("a.b".c) with a dot between two`
	}
	return nil, text, fmt.Errorf(`"$%s(%.32s": a ")" is missing behind the name; write it like $%[1]s("x")%[3]s`,
		word, text, way)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// checkName reports a name that no request has at the part's place.
func (p *Part) checkName() error {
	odd := strings.ContainsFunc(p.name, func(c rune) bool { return c < ' ' || c == 0x7f })
	switch {
	case odd || !utf8.ValidString(p.name):
		return fmt.Errorf("%q has control characters, or is not UTF-8: write the name as the request has it", p.text)
	case p.kind == Header && !octets.IsToken([]byte(p.name)):
		return fmt.Errorf("%s: %q is not the name of a header; write letters, digits and -", p.text, p.name)
	case (p.kind == Cookie || p.kind == SignedCookie) && strings.ContainsAny(p.name, "=;, \""):
		return fmt.Errorf("%s: %q is not the name of a cookie; write it without = ; , spaces and quotes", p.text, p.name)
	}
	return nil
}

// longer makes p, whose name ends before more, a reference to the longer name: $(cookie_connect.sid). It reports
// whether p is of a place whose names may have such letters.
func (p *Part) longer(more string) bool {
	free := []Kind{Query, Cookie, Header, Form, Claim, SignedCookie}
	if !slices.Contains(free, p.kind) || strings.ContainsAny(more, " $()\"'") {
		return false
	}
	word, _, _ := strings.Cut(p.text[1:], "_")
	if p.kind == Header {
		more = strings.ReplaceAll(more, "_", "-")
	}
	p.name += more
	p.text = fmt.Sprintf(`$%s("%s")`, word, p.name)
	return true
}

// brackets are what follows the name of $form_order[sku_id].
var brackets = regexp.MustCompile(`^(\[[^\[\]$]*\])+`)

// checkBrackets reports brackets behind a name, which end it: forms have them in names, and JSON has no such path.
func (p *Part) checkBrackets(rest string) error {
	found := brackets.FindString(rest)
	if found == "" || p.name == "" || p.kind == Path {
		return nil
	}
	word, name, _ := strings.Cut(p.text[1:], "_")
	if p.kind != JSON {
		return fmt.Errorf(`%s%s: the name ends before "["; write $%[3]s("%[4]s%[2]s"), or $(%[5]s)%[2]s where the brackets `+
			`are text`, p.text, found, word, name, p.text[1:])
	}
	path := name
	for key := range strings.SplitSeq(strings.Trim(found, "[]"), "][") {
		if key = strings.Trim(key, `"'`); !isPlainKey(key) {
			return fmt.Errorf(`%s%s: the path ends before "["; write it like $json("a"."b c"), with a dot before each key`,
				p.text, found)
		}
		path += "." + key
	}
	return fmt.Errorf(`%s%s: the path ends before "["; write $json_%[3]s, or $(%[4]s)%[2]s where the brackets are text`,
		p.text, found, path, p.text[1:])
}

// isPlainKey reports a key that needs no quotes.
func isPlainKey(key string) bool { return key != "" && nameEnd(key, "-") == len(key) }
