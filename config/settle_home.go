package config

import (
	"strings"

	"sluice/config/position"
	"sluice/config/report"
)

// MainHome is the name of the home that [settle] itself describes.
const MainHome = "main"

// SettleHome is another database, in which some SKUs are settled.
type SettleHome struct {
	Name         string   `toml:"name"` // unique, not MainHome
	Database     string   `toml:"database"`
	PasswordFile string   `toml:"password_file"`
	Password     Secret   // what PasswordFile holds
	URL          string   // as that of Settle
	SKUs         []string `toml:"skus"` // names, or their beginnings and *; may be empty: SKUs are moved there
}

func (h *SettleHome) preset() { *h = SettleHome{SKUs: []string{}} }

// homeNames have to fit into a label, a flag and a mark in Redis.
func isHomeName(name string) bool { return queueNames.MatchString(name) && len(name) <= 32 }

func (s *Settle) checkHomes(r *report.Report) {
	names := []string{MainHome}
	for i := range s.Homes {
		h, at := &s.Homes[i], position.Element("settle.home", i)
		names = append(names, h.Name)
		if !isHomeName(h.Name) {
			r.Fail(at+".name", "%q is not a name of a home; write a-z, 0-9, _ and -, at most 32", h.Name)
		}
		if r.Filled(at+".database", h.Database) {
			checkDatabase(r, at+".database", h.Database)
		}
		if len(s.Jobs.Kinds) > 0 && !strings.HasPrefix(h.Database, "postgres") {
			r.Fail(at+".database", "is %q, and settle.jobs.kinds needs PostgreSQL in every home", h.Database)
		}
		for _, sku := range h.SKUs {
			if strings.Contains(strings.TrimSuffix(sku, "*"), "*") || sku == "" {
				r.Fail(at+".skus", "%q is not a SKU or its beginning; write * at the end alone, like \"2*\"", sku)
			}
		}
	}
	r.Unique(names, func(i int) string { return position.Element("settle.home", max(i-1, 0)) + ".name" })
}

// HomeNames are the names of all homes; MainHome comes first.
func (s *Settle) HomeNames() []string {
	names := []string{MainHome}
	for _, h := range s.Homes {
		names = append(names, h.Name)
	}
	return names
}

// HomeOf is the name of the home in which a SKU is settled that was not moved: the first one whose skus have it.
func (s *Settle) HomeOf(sku string) string {
	for _, h := range s.Homes {
		for _, pattern := range h.SKUs {
			if beginning, ok := strings.CutSuffix(pattern, "*"); sku == pattern || ok && strings.HasPrefix(sku, beginning) {
				return h.Name
			}
		}
	}
	return MainHome
}

// AtHome is c with the database of a home as that of [settle]; nil = there is no such home.
func (c *Config) AtHome(name string) *Config {
	if name == MainHome {
		return c
	}
	for _, h := range c.Settle.Homes {
		if h.Name == name {
			there := *c
			s := &there.Settle
			s.Database, s.PasswordFile, s.Password, s.URL = h.Database, h.PasswordFile, h.Password, h.URL
			return &there
		}
	}
	return nil
}
