package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/server"
)

// closedShop answers every request itself.
type closedShop struct{}

func (closedShop) OpenConn(*server.Conn, bool) (answer []byte, ok bool) { return nil, true }
func (closedShop) CloseConn(*server.Conn)                               {}

func (closedShop) Handle(ctx *fasthttp.RequestCtx) {
	c, _ := server.Of(ctx)
	ctx.SetStatusCode(503)
	ctx.SetContentType("text/plain")
	ctx.Response.AppendBodyString("closed: " + string(c.Request().Path))
}

func (closedShop) ProtocolError(ctx *fasthttp.RequestCtx, e server.ProtocolError) {
	ctx.Response.AppendBodyString(e.Rule.Text()) // the status is set
}

func Example() {
	s := server.NewServer(closedShop{}, server.Limits{}, server.Options{ReadHeaderTimeout: time.Minute})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go s.Serve(ln)
	defer s.Drain(context.Background())
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(c, "GET /order?sku=1 HTTP/1.1\r\nHost: shop\r\n\r\n"+
		"POST /order HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")
	in := bufio.NewReader(c)
	for range 2 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.Status, "-", string(body))
	}
	c.Close()
	// Output:
	// 503 Service Unavailable - closed: /order
	// 400 Bad Request - Content-Length with Transfer-Encoding
}
