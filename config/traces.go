package config

import "net/url"

// Traces say where traces of forwarded requests go, and of how many.
type Traces struct {
	Endpoint string `toml:"endpoint"` // of a collector; "" = no traces
	OneIn    int    `toml:"one_in"`   // at least 1
	Service  string `toml:"service"`
}

func (t *Traces) check(r *report) {
	between(r, "traces.one_in", t.OneIn, 1, most)
	if t.Endpoint == "" {
		return
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.fail("traces.endpoint", "%q is no URL of a collector; write it like \"http://127.0.0.1:4318\"", t.Endpoint)
	}
	r.filled("traces.service", t.Service)
}
