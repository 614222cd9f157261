package main

import (
	"sluice/admin"
	"sluice/config"
)

// Status implements admin.Gate.
func (g *gate) Status() admin.Status {
	h := g.helm
	h.mu.Lock()
	s := admin.Status{Version: version, Started: g.begun.UTC(), Now: g.board.Wall().UTC(), Config: h.filed.Version(), Mode: h.running.Mode, Phase: "serving", Ready: true, Reload: h.reloaded}
	h.mu.Unlock()
	if g.draining.Load() {
		s.Phase = "draining"
	}
	for _, c := range g.probes {
		detail, ok := c.Probe()
		s.Checks = append(s.Checks, admin.Probed{Name: c.Name, OK: ok, Detail: detail})
		s.Ready = s.Ready && ok
	}
	return s
}

// Targets implements admin.Gate.
func (g *gate) Targets() []admin.Target {
	all := []admin.Target{}
	for _, t := range g.shop.Targets() {
		all = append(all, admin.Target{Target: t.Target, Up: t.Healthy && !t.Ejected, Healthy: t.Healthy, Ejected: t.Ejected, InFlight: t.InFlight, Open: t.Open, Idle: t.Idle})
	}
	return all
}

// Settings implements admin.Gate.
func (g *gate) Settings() admin.Settings {
	h := g.helm
	h.mu.Lock()
	defer h.mu.Unlock()
	origins := h.origins()
	s := admin.Settings{File: h.filed.Files()[0], Config: h.filed.Version()}
	for _, one := range h.running.Settings() {
		origin := one.Origin
		if o := origins[one.Key]; o != "" {
			origin = o
		}
		s.Settings = append(s.Settings, admin.Setting{Key: one.Key, Value: one.Value, Origin: origin, Live: isLive(one.Key)})
	}
	return s
}

// origins are those of keys whose value is not the file's.
func (h *helm) origins() map[string]string {
	origins := map[string]string{}
	if h.mode {
		origins["mode"] = "--mode"
	}
	for _, o := range h.overrides {
		if o.SKU == "" {
			origins[h.running.Place(o.Key)] = "override " + o.ID
		}
	}
	return origins
}

// valueAt is a value that is there.
func valueAt(c *config.Config, key string) any {
	v, err := c.ValueOf(key)
	if err != nil {
		return nil // a rate that only the running configuration has
	}
	return v
}
