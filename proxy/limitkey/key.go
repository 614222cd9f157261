// Package limitkey finds what a keyed limit counts a request by, and which override of the limit holds for that key.
//
// It promises that two requests have the same key only where all values of the variables are the same, that a value
// which stands twice in a request is a fault and no key, and that neither costs an allocation. It does not count.
package limitkey

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// Key is what one limit counts by on one route. It is safe for concurrent use.
type Key struct {
	variable   param.Variable
	ipv4, ipv6 int // how many bits of $remote_addr tell clients apart
}

// Compile parses text; names are the {names} of the route's pattern.
func Compile(text string, names []string, ipv4Prefix, ipv6Prefix int) (k Key, err error) {
	k = Key{ipv4: ipv4Prefix, ipv6: ipv6Prefix}
	if k.variable, err = param.Compile(text, names); err != nil {
		return k, err
	}
	if len(k.references()) == 0 {
		return k, fmt.Errorf("%q is the same for every client", text)
	}
	return k, nil
}

// Variable is what the key is made of. The caller must not change it.
func (k *Key) Variable() *param.Variable { return &k.variable }

// OfClient reports whether Append needs to know the client.
func (k *Key) OfClient() bool { return k.variable.Uses(param.RemoteAddr) }

// references are the parts that are no literal.
func (k *Key) references() []param.Part {
	return slices.DeleteFunc(slices.Clone(k.variable.Parts()),
		func(part param.Part) bool { return part.Kind() == param.Literal })
}

// Append appends the key of a request of client; ok is false when the request lacks some of it. A part that stands
// twice is a fault: a client that could choose would be counted nowhere.
func (k *Key) Append(dst []byte, from *param.Source, client netip.Addr) (key []byte, ok bool, fault param.Fault) {
	parts := k.variable.Parts()
	for i := range parts {
		part := &parts[i]
		switch {
		case part.Kind() == param.Literal: // the same for every client
			continue
		case part.Kind() == param.RemoteAddr:
			if dst, ok = k.appendClient(dst, client); !ok {
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
func (k *Key) FromValues(values []string) (key []byte, err error) {
	of := k.references()
	if len(values) != len(of) {
		return nil, fmt.Errorf("%d values, and the key %q has %d variables: write one for each", len(values),
			k.variable.String(), len(of))
	}
	for i, v := range values {
		if of[i].Kind() != param.RemoteAddr {
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
		key, _ = k.appendClient(key, client.Unmap())
	}
	return key, nil
}

// lengthSize is what Append writes after a value.
const lengthSize = 4

// appendClient appends the client's network. A client that comes by a unix socket has no address.
func (k *Key) appendClient(dst []byte, client netip.Addr) (key []byte, ok bool) {
	network, err := client.Prefix(k.prefixBits(client.Is4()))
	if err != nil || !client.IsValid() {
		return dst, false
	}
	sixteen := network.Addr().As16()
	return append(dst, sixteen[:]...), true
}

func (k *Key) prefixBits(v4 bool) int {
	if v4 {
		return k.ipv4
	}
	return k.ipv6
}

// AppendText appends the key for people: networks as such, and by hash what may be a secret or a person, unless open.
func (k *Key) AppendText(dst []byte, from *param.Source, client netip.Addr, open bool,
	hash func(dst, value []byte) []byte) []byte {
	parts := k.variable.Parts()
	for i := range parts {
		part := &parts[i]
		if part.Kind() == param.Literal {
			dst = append(dst, part.Text()...)
			continue
		}
		if i > 0 && parts[i-1].Kind() != param.Literal {
			dst = append(dst, ' ')
		}
		if part.Kind() == param.RemoteAddr {
			dst = k.appendNetwork(dst, client)
			continue
		}
		v, _ := part.Lookup(from)
		if open || part.Kind() == param.Host || part.Kind() == param.Path || part.Kind() == param.Query {
			dst = append(dst, v...)
		} else {
			dst = hash(dst, v)
		}
	}
	return dst
}

func (k *Key) appendNetwork(dst []byte, client netip.Addr) []byte {
	network, err := client.Prefix(k.prefixBits(client.Is4()))
	switch {
	case err != nil:
		return append(dst, "no address"...)
	case network.IsSingleIP():
		return network.Addr().AppendTo(dst)
	}
	return network.AppendTo(dst)
}
