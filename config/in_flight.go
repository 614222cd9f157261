package config

import (
	"slices"
	"sluice/config/position"
	"sluice/config/report"
	"strings"
)

// InFlight bounds the requests of one key that are in the upstream at the same time.
type InFlight struct {
	Name       string   `toml:"name"`                    // unique; of letters, digits and . _ -
	Key        string   `toml:"key"`                     // a template of request variables
	Max        int      `toml:"max" unit:"requests"`     // 1 to 65,535
	IPv4Prefix int      `toml:"ipv4_prefix" unit:"bits"` // 1 to 32
	IPv6Prefix int      `toml:"ipv6_prefix" unit:"bits"` // 1 to 128
	MaxKeys    int      `toml:"max_keys" unit:"keys"`    // 1 to 16 million, 16 bytes each
	Routes     []string `toml:"routes"`                  // names; empty = all but `pass`
}

func (l *InFlight) preset() {
	*l = InFlight{Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, MaxKeys: 100_000, Routes: []string{}}
}

func (l *InFlight) check(r *report.Report, at string, routes []string) {
	report.Between(r, at+".max", l.Max, 1, 65535)
	report.Between(r, at+".max_keys", l.MaxKeys, 1, 16_000_000)
	checkKeyed(r, at, keyedLimit{l.Name, l.Key, l.IPv4Prefix, l.IPv6Prefix, l.Routes}, routes)
}

// keyedLimit is what the limits of a key have in common.
type keyedLimit struct {
	name, key              string
	ipv4Prefix, ipv6Prefix int
	routes                 []string
}

func checkKeyed(r *report.Report, at string, l keyedLimit, routes []string) {
	if r.Filled(at+".name", l.name) && strings.ContainsFunc(l.name, notLabel) {
		r.Fail(at+".name", "%q stands in metrics and headers; write letters, digits and . _ -", l.name)
	}
	if len(report.VariablesOf(l.key)) == 0 {
		r.Fail(at+".key", "%q is the same for everybody; write a request variable like \"$remote_addr\"", l.key)
	}
	report.Between(r, at+".ipv4_prefix", l.ipv4Prefix, 1, 32)
	report.Between(r, at+".ipv6_prefix", l.ipv6Prefix, 1, 128)
	for i, name := range l.routes {
		if !slices.Contains(routes, name) {
			r.Fail(position.Element(at+".routes", i), "%q is no route; write the name of a [[route]]", name)
		}
	}
}

// keyedNames are the names of all limits of keys, and where each stands.
func (l *Limits) keyedNames() (names, at []string) {
	for i := range l.Rates {
		names, at = append(names, l.Rates[i].Name), append(at, position.Element("limits.rate", i)+".name")
	}
	for i := range l.InFlight {
		names, at = append(names, l.InFlight[i].Name), append(at, position.Element("limits.in_flight", i)+".name")
	}
	return names, at
}
