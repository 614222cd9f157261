package proxy

import (
	"net/netip"

	"github.com/gaissmai/bart"
)

// addressList is a list of networks, however long, that is asked once a request.
type addressList struct {
	trie bart.Lite
	some bool
}

func newAddressList(prefixes []netip.Prefix) *addressList {
	l := &addressList{some: len(prefixes) > 0}
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

func (l *addressList) has(addr netip.Addr) bool {
	return l.some && addr.IsValid() && l.trie.Lookup(addr)
}

// denied looks the client up in both lists. One that is in both is denied.
func (p *Proxy) denied(r *request) bool {
	if !p.deny.some && !p.bypass.some {
		return false
	}
	client := r.clientAddr()
	if p.deny.has(client) {
		r.shard.loud.noteClient(r, DeniedIP)
		return true
	}
	r.bypass = p.bypass.has(client)
	return false
}
