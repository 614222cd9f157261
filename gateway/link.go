package gateway

import (
	"log/slog"
	"sync"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/stockgate/redisconn"
)

// redisLink is the one way to Redis of all but the ledger, whose orders do not wait behind anything else: the shop's
// stock, sales, rooms and the fleet. It is opened when something first needs it.
type redisLink struct {
	mu     sync.Mutex
	client *redisconn.Client // nil = nothing has needed it
}

// of is the way to the Redis of c.
func (l *redisLink) of(c *config.Config, log *slog.Logger) (*redisconn.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.client == nil {
		l.client, err = stores.OpenLink(c, log)
	}
	return l.client, err
}

// close ends what of has opened.
func (l *redisLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		_ = l.client.Close()
	}
}
