package param

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"sluice/proxy/reject"
)

// LimitKey is what one limit counts by on one route. Two requests have the same key only where all values of the
// variables are the same. It is safe for concurrent use.
type LimitKey struct {
	variable   Variable
	ipv4, ipv6 int // how many bits of $remote_addr tell clients apart
}

// CompileLimitKey parses text; names are the {names} of the route's pattern.
func CompileLimitKey(text string, names []string, ipv4Prefix, ipv6Prefix int) (k LimitKey, err error) {
	k = LimitKey{ipv4: ipv4Prefix, ipv6: ipv6Prefix}
	if k.variable, err = Compile(text, names); err != nil {
		return k, err
	}
	if len(k.references()) == 0 {
		return k, fmt.Errorf("%q is the same for every client; write a variable of the request like \"$remote_addr\"", text)
	}
	return k, nil
}

// Variable is what the key is made of. The caller must not change it.
func (l *LimitKey) Variable() *Variable { return &l.variable }

// OfClient reports whether Append needs to know the client.
func (l *LimitKey) OfClient() bool { return l.variable.Uses(RemoteAddr) }

// references are the parts that are no literal.
func (l *LimitKey) references() []Part {
	return slices.DeleteFunc(slices.Clone(l.variable.Parts()),
		func(part Part) bool { return part.Kind() == Literal })
}

// Append appends the key of a request of client; ok is false when the request lacks some of it. A part that stands
// twice is a fault: a client that could choose would be counted nowhere.
func (l *LimitKey) Append(dst []byte, from *Source, client netip.Addr) (key []byte, ok bool, fault Fault) {
	parts := l.variable.Parts()
	for i := range parts {
		part := &parts[i]
		switch {
		case part.Kind() == Literal: // the same for every client
			continue
		case part.Kind() == RemoteAddr:
			if dst, ok = l.appendClient(dst, client); !ok {
				return dst, false, fault
			}
			continue
		}
		v, fault := part.Lookup(from)
		if len(v) == 0 || fault.Reason != reject.Admitted {
			return dst, false, fault
		}
		// With its length, so that no two keys are put together to the same.
		dst = binary.LittleEndian.AppendUint32(append(dst, v...), uint32(len(v)))
	}
	return dst, true, fault
}

// FromValues is the key of a request with these values, one for each variable: an address for $remote_addr.
func (l *LimitKey) FromValues(values []string) (key []byte, err error) {
	of := l.references()
	if len(values) != len(of) {
		return nil, fmt.Errorf("%d values, and the key %q has %d variables: write one for each", len(values),
			l.variable.String(), len(of))
	}
	for i, v := range values {
		if of[i].Kind() != RemoteAddr {
			if of[i].Kind() == Cookie {
				v = string(trimCookie([]byte(v)))
			}
			if v == "" {
				return nil, fmt.Errorf("%s has no value: a request without one is not counted", of[i].Text())
			}
			key = binary.LittleEndian.AppendUint32(append(key, v...), uint32(len(v)))
			continue
		}
		client, err := netip.ParseAddr(v)
		if err != nil {
			return nil, fmt.Errorf(`%.80q is no address of a client, and the key has $remote_addr: write it like "203.0.113.7"`,
				v)
		}
		key, _ = l.appendClient(key, client.Unmap())
	}
	return key, nil
}

// lengthSize is what Append writes after a value.
const lengthSize = 4

// appendClient appends the client's network. A client that comes by a unix socket has no address.
func (l *LimitKey) appendClient(dst []byte, client netip.Addr) (key []byte, ok bool) {
	network, err := client.Prefix(l.prefixBits(client.Is4()))
	if err != nil || !client.IsValid() {
		return dst, false
	}
	sixteen := network.Addr().As16()
	return append(dst, sixteen[:]...), true
}

func (l *LimitKey) prefixBits(v4 bool) int {
	if v4 {
		return l.ipv4
	}
	return l.ipv6
}

// AppendText appends the key for people: networks as such, and by hash what may be a secret or a person, unless open.
func (l *LimitKey) AppendText(dst []byte, from *Source, client netip.Addr, open bool,
	hash func(dst, value []byte) []byte) []byte {
	parts := l.variable.Parts()
	for i := range parts {
		part := &parts[i]
		if part.Kind() == Literal {
			dst = append(dst, part.Text()...)
			continue
		}
		if i > 0 && parts[i-1].Kind() != Literal {
			dst = append(dst, ' ')
		}
		if part.Kind() == RemoteAddr {
			dst = l.appendNetwork(dst, client)
			continue
		}
		v, _ := part.Lookup(from)
		if open || part.Kind() == Host || part.Kind() == Path || part.Kind() == Query {
			dst = append(dst, v...)
		} else {
			dst = hash(dst, v)
		}
	}
	return dst
}

func (l *LimitKey) appendNetwork(dst []byte, client netip.Addr) []byte {
	network, err := client.Prefix(l.prefixBits(client.Is4()))
	switch {
	case err != nil:
		return append(dst, "no address"...)
	case network.IsSingleIP():
		return network.Addr().AppendTo(dst)
	}
	return network.AppendTo(dst)
}
