package config

import "net/url"

// Traces say where traces of forwarded requests go, and of how many.
type Traces struct {
	Endpoint    string  `toml:"endpoint"`     // of a collector; "" = no traces
	SampleRatio float64 `toml:"sample_ratio"` // 0 to 1; 0 = only those that a trusted proxy has sampled
	ServiceName string  `toml:"service_name"`
}

func (t *Traces) check(r *report) {
	between(r, "traces.sample_ratio", t.SampleRatio, 0, 1)
	if t.Endpoint == "" {
		return
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.fail("traces.endpoint", "%q is no URL of a collector; write it like \"http://127.0.0.1:4318\"", t.Endpoint)
	}
	r.filled("traces.service_name", t.ServiceName)
}
