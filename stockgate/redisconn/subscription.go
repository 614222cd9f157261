package redisconn

import (
	"context"
	"net"
)

type endKey struct{}

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
