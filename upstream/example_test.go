package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/upstream"
)

func Example() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "ordered at ", r.Host)
	}))
	defer shop.Close()
	pool, err := upstream.New(upstream.Options{
		Targets: []string{shop.URL}, Policy: "least_conn", MaxConns: 16, Retry: "connect",
		ConnectTimeout: time.Second, ResponseTimeout: 5 * time.Second,
		Timeout: 10 * time.Second, IdleConnTimeout: 4 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	var resp fasthttp.Response
	outcome := pool.Send(&proxy.Outgoing{
		Line:   []byte("POST /api/seckill/1001/order HTTP/1.1\r\n"),
		Host:   []byte("shop.example"),
		Fields: []byte("Content-Length: 2\r\n"),
		Body:   []byte("{}"),
		Order:  true,
	}, &resp)
	fmt.Println(outcome == proxy.Answered, resp.StatusCode(), string(resp.Body()))
	// Output: true 201 ordered at shop.example
}
