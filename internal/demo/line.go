package demo

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"
)

// line is a shopper's keep-alive connection. It carries one request at a time and never repeats one.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

// An answer to an order is small: what is longer is none.
const (
	headRoom  = 4 << 10  // bytes of an answer's header
	maxAnswer = 64 << 10 // bytes of its body
)

func dial(ctx context.Context, addr string) (*line, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &line{conn: conn, in: bufio.NewReaderSize(conn, headRoom)}, nil
}

func (l *line) close() { _ = l.conn.Close() }

// exchange sends the request and waits for the answer, or until ctx ends. After an answer that ends
// the connection, or none, the line is not reusable.
func (l *line) exchange(ctx context.Context, request []byte) (a reply, reusable bool) {
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) }) // long past: ends what waits
	defer stop()
	if _, err := l.conn.Write(request); err != nil {
		return lost(ctx), false
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	if err := resp.ReadLimitBody(l.in, maxAnswer); err != nil {
		return lost(ctx), false
	}
	return understand(resp), !resp.ConnectionClose() && l.in.Buffered() == 0
}

// orderRequest is the order of the i-th shopper: the same one, by its Idempotency-Key, however often it is pressed.
func orderRequest(host, sku string, i int) []byte {
	return fmt.Appendf(nil,
		"POST /api/seckill/%s/order HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\nAccept: application/json\r\n"+
			"Idempotency-Key: order-of-%s\r\nX-Forwarded-For: %s\r\nContent-Length: 0\r\n\r\n",
		url.PathEscape(sku), host, uidCookie, userName(i), userName(i), address(i))
}

// address is where the i-th shopper seems to come from: one of 198.18.0.0/15, set aside for such trials (RFC 2544); a
// gate believes it when it trusts loopback.
func address(i int) string { return fmt.Sprintf("198.%d.%d.%d", 18+i>>16&1, i>>8&255, i&255) }
