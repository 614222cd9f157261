package proxy

import (
	"fmt"
	"net/netip"
	"strings"

	"sluice/proxy/param"
)

// RoomBypass is who needs no pass: clients of networks, and those who prove something, such as "$jwt_level=vip". A nil
// one is for none.
type RoomBypass struct {
	networks   *networkSet
	conditions []param.Condition
}

// NewRoomBypass reads CIDRs, and conditions, which begin with "$". A client can write what is not proven itself, so
// that is no condition here.
func NewRoomBypass(entries []string) (*RoomBypass, error) {
	var networks []netip.Prefix
	b := new(RoomBypass)
	for _, text := range entries {
		if !strings.HasPrefix(text, "$") {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("%q is neither a CIDR nor a condition; write it like \"10.0.0.0/8\" or \"$jwt_level=vip\"",
					text)
			}
			networks = append(networks, network)
			continue
		}
		c, err := param.CompileCondition(text, nil)
		switch {
		case err != nil:
			return nil, err
		case !c.Variable().Proven():
			return nil, fmt.Errorf("%q is not proven: each client could write it; compare a $jwt_ claim or a $signed_ cookie",
				text)
		}
		b.conditions = append(b.conditions, c)
	}
	b.networks = newNetworkSet(networks)
	return b, nil
}

// Variables are those that Holds looks up.
func (r *RoomBypass) Variables() (all []*param.Variable) {
	if r == nil {
		return nil
	}
	for i := range r.conditions {
		all = append(all, r.conditions[i].Variable())
	}
	return all
}

// Holds reports whether a client at addr, with what s says of it, needs no pass.
func (r *RoomBypass) Holds(addr netip.Addr, s *param.Source) bool {
	if r == nil {
		return false
	}
	if r.networks.Has(addr) {
		return true
	}
	for i := range r.conditions {
		if r.conditions[i].Holds(s) {
			return true
		}
	}
	return false
}
