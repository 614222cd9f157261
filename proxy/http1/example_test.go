package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"sluice/proxy/http1"
)

// closedShop answers every request itself.
type closedShop struct{}

func (closedShop) OpenConn(*http1.Conn, bool) (answer []byte, ok bool) { return nil, true }
func (closedShop) CloseConn(*http1.Conn)                               {}

func (closedShop) Handle(x *http1.Exchange) {
	x.Local.Begin(503, []byte("Content-Type: text/plain\r\n"), nil)
	x.Local.WriteString("closed: ")
	x.Local.Write(x.Request.Path())
}

func (closedShop) ProtocolError(x *http1.Exchange, e http1.ProtocolError) {
	x.Local.Begin(e.Status, nil, nil)
	x.Local.WriteString(e.Rule.Text())
}

func Example() {
	s := http1.NewServer(closedShop{}, http1.Limits{}, http1.Options{ReadHeaderTimeout: time.Minute})
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
