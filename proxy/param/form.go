package param

import (
	"bytes"

	"sluice/internal/octets"
	"sluice/proxy/reading"
	"sluice/proxy/reject"
)

// pair looks p up in a query or a form of type application/x-www-form-urlencoded (WHATWG URL). A pair next to ";" is
// ambiguous: servers that split there too find another value, or another name.
func (s *Source) pair(list []byte, p *Part) ([]byte, Fault) {
	m, split := s.pairs(list, p)
	raw, fault := m.only(p.name)
	switch {
	case fault.Reason != reject.Admitted:
		return nil, fault
	case split:
		return nil, ambiguous(reject.ValueInvalid, p.text)
	}
	return s.text(raw, true, p)
}

// pairs are those that bear the name of p; split reports that one stands next to ";".
func (s *Source) pairs(list []byte, p *Part) (m match, split bool) {
	for before := byte('&'); len(list) > 0; {
		field, rest, after := list, []byte(nil), byte('&')
		if i := bytes.IndexAny(list, "&;"); i >= 0 {
			field, rest, after = list[:i], list[i+1:], list[i]
		}
		name, raw := octets.Cut(field, '=')
		if m.add(reading.OfName(s.name(name, true), p.name), raw) && (before == ';' || after == ';') {
			split = true
		}
		list, before = rest, after
	}
	return m, split
}

// formField looks p up in a form.
func (s *Source) formField(p *Part) ([]byte, Fault) {
	if fault := s.CheckBody(); fault.Reason != reject.Admitted || len(s.body()) == 0 {
		return nil, fault
	}
	switch m := s.mediaType(); m.kind {
	case formBody:
		return s.pair(s.Body, p)
	case multipartBody:
		return s.formPart(m.boundary, p)
	}
	return nil, Fault{}
}
