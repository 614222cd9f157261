package param

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Overrides tells which of several patterns holds for a key: of those that match, the most specific one. That is the
// longest prefix of a network, and otherwise the pattern with the most letters beside its stars. The zero value holds
// for no key. It is safe for concurrent use.
type Overrides struct{ patterns []overridePattern } // the most specific first

// overridePattern is a network, or text with a star for any text, also for none.
type overridePattern struct {
	index   int // in the list that was compiled
	text    string
	network netip.Prefix
	pieces  []string // between stars; nil = a network
}

// maxValue is how long a value may be that is compared with patterns of text. It bounds what a client can have it cost.
const maxValue = 256

// What Overrides.Of says where no pattern holds.
const (
	NoPattern    = -1
	ValueTooLong = -2 // the value is longer than what is compared: any pattern might hold
)

// PatternError names a pattern that cannot be used.
type PatternError struct {
	Pattern string
	Err     error
}

func (p *PatternError) Error() string { return fmt.Sprintf("%q %v", p.Pattern, p.Err) }
func (p *PatternError) Unwrap() error { return p.Err }

// Overrides compiles patterns of the values of l, which has one variable: CIDRs where it is $remote_addr, else text in
// which * stands for any text. A pattern that no key of l can match is a *PatternError.
func (l *LimitKey) Overrides(patterns []string) (o Overrides, err error) {
	if len(patterns) == 0 {
		return o, nil
	}
	of := l.references()
	if len(of) != 1 {
		return o, fmt.Errorf("the key %q has %d variables, and a pattern is of one: write a [[limits.rate]] for one of them",
			l.variable.String(), len(of))
	}
	for i, text := range patterns {
		p := overridePattern{index: i, text: text}
		if of[0].Kind() == RemoteAddr {
			p.network, err = l.network(text)
		} else {
			p.pieces, err = patternPieces(text, &of[0])
		}
		if err != nil {
			return Overrides{}, &PatternError{text, err}
		}
		for _, other := range o.patterns {
			if p.network == other.network && slices.Equal(p.pieces, other.pieces) {
				return Overrides{}, &PatternError{text, fmt.Errorf("matches what %q does: drop one of both", other.text)}
			}
		}
		o.patterns = append(o.patterns, p)
	}
	slices.SortStableFunc(o.patterns, func(a, b overridePattern) int { return cmp.Compare(b.weight(), a.weight()) })
	return o, nil
}

// network parses a CIDR, or an address, of clients that l tells apart.
func (l *LimitKey) network(text string) (of netip.Prefix, err error) {
	if of, err = netip.ParsePrefix(text); err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return of, errors.New(`is no network, and the key is $remote_addr: write it like "10.0.0.0/8"`)
		}
		of = netip.PrefixFrom(addr, addr.BitLen())
	}
	bits := l.prefixBits(of.Addr().Is4())
	switch {
	case of.Addr().Is4In6():
		return of, errors.New(`never matches, for such clients count as IPv4: write it like "10.0.0.0/8"`)
	case of != of.Masked():
		return of, fmt.Errorf("has bits behind its prefix: write %q", of.Masked())
	case of.Bits() > bits:
		return of, fmt.Errorf("never matches, for a client is a /%d here: write %q, or change ipv4_prefix or ipv6_prefix",
			bits, netip.PrefixFrom(of.Addr(), bits).Masked())
	}
	return of, nil
}

// patternPieces cuts text at its stars.
func patternPieces(text string, of *Part) ([]string, error) {
	_, cidr := netip.ParsePrefix(text)
	switch {
	case text == "":
		return nil, errors.New("never matches: a request without a value is not counted")
	case strings.Trim(text, "*") == "":
		return nil, errors.New("matches every value: write its rate as rate")
	case cidr == nil:
		return nil, fmt.Errorf("never matches, for the key is %s: networks are for $remote_addr", of.Text())
	case len(text)-strings.Count(text, "*") > maxValue:
		return nil, fmt.Errorf("never matches: values above %d bytes are not compared; write a shorter one", maxValue)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return nil, errors.New("never matches: values are text in UTF-8 without control characters")
	case of.Kind() == Host && strings.ToLower(text) != text:
		return nil, fmt.Errorf("never matches, for $host is in lower case: write %q", strings.ToLower(text))
	}
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	return strings.Split(text, "*"), nil
}

// weight is larger for a pattern that is more specific; text without a star is the most specific.
func (o *overridePattern) weight() int {
	switch n := len(strings.Join(o.pieces, "")); len(o.pieces) {
	case 0:
		return o.network.Bits()
	case 1:
		return n + 1<<20
	default:
		return n
	}
}

// Of is the place of the pattern that holds for key, as LimitKey.Append has it; NoPattern, or ValueTooLong.
func (o *Overrides) Of(key []byte) int {
	if len(o.patterns) > 0 && o.patterns[0].pieces != nil && len(key)-lengthSize > maxValue {
		return ValueTooLong
	}
	for i := range o.patterns {
		if p := &o.patterns[i]; p.pieces == nil && p.containsAddr(key) ||
			p.pieces != nil && p.matches(key[:len(key)-lengthSize]) {
			return p.index
		}
	}
	return NoPattern
}

func (o *overridePattern) containsAddr(key []byte) bool {
	return o.network.Contains(netip.AddrFrom16([16]byte(key)).Unmap())
}

// matches takes each piece where it comes first: if any place fits, the first one does.
func (o *overridePattern) matches(value []byte) bool {
	last := len(o.pieces) - 1
	if last == 0 {
		return string(value) == o.pieces[0]
	}
	first, end := o.pieces[0], o.pieces[last]
	if len(value) < len(first)+len(end) || string(value[:len(first)]) != first ||
		string(value[len(value)-len(end):]) != end {
		return false
	}
	value = value[len(first) : len(value)-len(end)]
	for _, piece := range o.pieces[1:last] {
		at := indexOf(value, piece)
		if at < 0 {
			return false
		}
		value = value[at+len(piece):]
	}
	return true
}

// indexOf is bytes.Index of text, without a copy of it.
func indexOf(in []byte, text string) int {
	for i := 0; i+len(text) <= len(in); i++ {
		if string(in[i:i+len(text)]) == text {
			return i
		}
	}
	return -1
}
