package main

import (
	"fmt"
	"io"
	"slices"

	"sluice/cache"
	"sluice/config"
)

func cacheOptions(c *config.Config) cache.Options {
	return cache.Options{
		Size: int64(c.Cache.Size), StaleWhileRevalidate: c.Cache.StaleWhileRevalidate, StaleIfError: c.Cache.StaleIfError,
	}
}

// caches reports whether any route keeps answers.
func caches(c *config.Config) bool {
	return slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Cache > 0 })
}

// tellCached warns of pages that look like a person's.
func tellCached(w io.Writer, c *config.Config) {
	for i, r := range c.Routes {
		if r.Cache > 0 && r.User != "" {
			fmt.Fprintf(w, "warning   %s: the route knows its user, but its answers are given to all; make sure that the shop says private or Vary: Cookie\n", c.At(fmt.Sprintf("route[%d].cache", i+1)))
		}
	}
}
