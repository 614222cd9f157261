package main

import (
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
