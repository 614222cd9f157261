package redisconn

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

type endKey struct{}

// Subscription is a *redis.PubSub.
type Subscription interface {
	ReceiveTimeout(ctx context.Context, timeout time.Duration) (any, error)
	Ping(ctx context.Context, payload ...string) error
	Close() error
}

// Subscribe opens a connection to the server of c for the messages of a channel alone, and waits as long as that for
// the server to agree.
func Subscribe(ctx context.Context, c Commands, channel string, timeout time.Duration) (Subscription, error) {
	sub := c.(*redis.Client).Subscribe(ctx, channel)
	if _, err := sub.ReceiveTimeout(ctx, timeout); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// ClosedWith returns ctx for a subscription whose connections are closed when end ends. Closing the subscription would
// wait: go-redis holds its lock while it connects again, and watches no context.
func ClosedWith(ctx, end context.Context) context.Context {
	return context.WithValue(ctx, endKey{}, end)
}

// boundConn is a connection that is closed with a context.
type boundConn struct {
	net.Conn
	release func() bool
}

// boundTo returns conn, closed with what ClosedWith has put into ctx.
func boundTo(ctx context.Context, conn net.Conn) net.Conn {
	end, ok := ctx.Value(endKey{}).(context.Context)
	if !ok {
		return conn
	}
	return &boundConn{conn, context.AfterFunc(end, func() { conn.Close() })}
}

func (c *boundConn) Close() error {
	c.release()
	return c.Conn.Close()
}
