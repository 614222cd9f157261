package proxy

import (
	"bytes"
	"net/netip"

	"github.com/gaissmai/bart"

	"sluice/internal/octets"
)

// TrustedProxies are the proxies that are believed.
type TrustedProxies []netip.Prefix

// Has reports whether what addr says of others is believed. A unix socket is always local.
func (t TrustedProxies) Has(addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	for _, prefix := range t {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Rightmost is the rightmost address of a comma-separated list that is not a trusted proxy itself, or otherwise.
func (t TrustedProxies) Rightmost(list []byte, otherwise netip.Addr) netip.Addr {
	found := otherwise
	for len(list) > 0 {
		i := bytes.LastIndexByte(list, ',')
		addr, ok := octets.ParseAddr(octets.Trim(list[i+1:]))
		if !ok {
			return found // what stands left of nonsense is not to be believed
		}
		found = addr
		if !t.Has(addr) {
			return addr
		}
		list = list[:max(i, 0)]
	}
	return found
}

// networkSet is a list of networks, however long, that is asked once a request.
type networkSet struct {
	trie bart.Lite
	Used bool // it has any
}

// newNetworkSet makes a list.
func newNetworkSet(prefixes []netip.Prefix) *networkSet {
	l := &networkSet{Used: len(prefixes) > 0}
	for _, p := range prefixes {
		l.trie.Insert(plainPrefix(p))
	}
	return l
}

// plainPrefix is p in the form in which clients' addresses are: ::ffff:192.0.2.0/120 is 192.0.2.0/24.
func plainPrefix(p netip.Prefix) netip.Prefix {
	if addr := p.Addr(); addr.Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
	return p
}

// Has reports whether addr is in one of the networks.
func (n *networkSet) Has(addr netip.Addr) bool {
	return n.Used && addr.IsValid() && n.trie.Lookup(addr)
}
