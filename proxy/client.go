package proxy

import (
	"bytes"
	"net/netip"

	"github.com/gaissmai/bart"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// connState is what is known of a connection from one of its requests to the next.
type connState struct {
	shard    *metrics.Shard
	trusted  bool            // its peer is a trusted proxy, by the Proxy of this generation
	judgedBy uint32          // generation
	shared   bool            // it carries many clients, or one on the bypass list: no limit of one client applies
	counted  bool            // the connection limits know it
	rate     ConnRateLimiter // nil = not limited
	decides  *Decide         // its requests are questions; nil = they are forwarded
	question []byte          // buffer for the request that is asked about
}

// resolveTrust decides whether the peer of c is trusted, once for each Proxy that c meets: a proxy that is no longer
// trusted must not go on to name its clients on connections that it has kept. One goroutine serves c at a time.
func (p *Proxy) resolveTrust(state *connState, c *server.Conn) {
	if state.judgedBy != p.generation {
		trusted := p.Trusted
		if state.decides != nil {
			trusted = state.decides.Peers
		}
		state.judgedBy, state.trusted = p.generation, trusted.Has(c.Peer()) && !c.Unnamed()
	}
}

// clientAddr is the client that is limited: the first untrusted address on the way here. That is the peer, unless it is
// a trusted proxy; then the rightmost entry of the header that is not one itself.
func (r *Request) clientAddr() netip.Addr {
	if !r.addr.IsValid() {
		r.addr = r.findClient()
	}
	return r.addr
}

func (r *Request) findClient() netip.Addr {
	p := r.proxy
	peer := r.conn.Peer()
	if !r.client.trusted {
		return peer
	}
	// Later lines continue earlier ones (RFC 9110, section 5.3).
	list := r.scratch.text[:0]
	for name, value := range r.head.Fields {
		if octets.EqualFold(name, p.ClientHeader) {
			list = append(append(list, ','), value...)
		}
	}
	r.scratch.text = list
	if len(list) == 0 {
		return peer
	}
	var asks TrustedProxies // may write their own address behind that of their client
	if r.client.decides != nil {
		asks = r.client.decides.Peers
	}
	return p.Trusted.Rightmost(list[1:], asks, peer)
}

// checkDenyList looks the client up in both lists. One that is in both is denied.
func (p *Proxy) checkDenyList(r *Request) rejection {
	client := r.clientAddr()
	if p.deny.Has(client) {
		p.countClient(r, reject.DeniedIP)
		return rejection{Reason: reject.DeniedIP}
	}
	r.bypass = p.bypass.Has(client)
	return rejection{}
}

// countClient counts that the client's address was rejected, an IPv6 one by its /64.
func (p *Proxy) countClient(r *Request, reason reject.Reason) {
	r.client.shard.RejectedClient(reason, r.clientAddr(), r.now)
}

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

// Rightmost is the rightmost address of a comma-separated list that is no proxy of t or more, or otherwise.
func (t TrustedProxies) Rightmost(list []byte, more TrustedProxies, otherwise netip.Addr) netip.Addr {
	found := otherwise
	for len(list) > 0 {
		i := bytes.LastIndexByte(list, ',')
		addr, ok := octets.ParseAddr(octets.Trim(list[i+1:]))
		if !ok {
			return found // what stands left of nonsense is not to be believed
		}
		found = addr
		if !t.Has(addr) && !more.Has(addr) {
			return addr
		}
		list = list[:max(i, 0)]
	}
	return found
}

// networkSet is a list of networks, however long, that is asked once a request.
type networkSet struct {
	lookup func(netip.Addr) bool // nil = there is none
}

// newNetworkSet takes an IPv4-mapped prefix as the IPv4 prefix that it stands for.
func newNetworkSet(prefixes []netip.Prefix) *networkSet {
	if len(prefixes) == 0 {
		return &networkSet{}
	}
	var trie bart.Lite
	for _, p := range prefixes {
		trie.Insert(plainPrefix(p))
	}
	return &networkSet{trie.Lookup}
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
	return n.lookup != nil && addr.IsValid() && n.lookup(addr)
}
