package config

import "time"

// Cache bounds what routes with cache keep of the shop's answers.
type Cache struct {
	Size                 Size          `toml:"size"`                   // 1MiB to 64GiB
	StaleWhileRevalidate time.Duration `toml:"stale_while_revalidate"` // 0 or above
	StaleIfError         time.Duration `toml:"stale_if_error"`         // 0 or above
}

func defaultCache() Cache {
	return Cache{Size: 64 << 20, StaleWhileRevalidate: 10 * time.Second, StaleIfError: 10 * time.Minute}
}

func (c *Cache) check(r *report) {
	between(r, "cache.size", c.Size, 1<<20, 64<<30)
	r.notNegative("cache.stale_while_revalidate", c.StaleWhileRevalidate)
	r.notNegative("cache.stale_if_error", c.StaleIfError)
}
