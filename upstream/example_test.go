package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/upstream"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "ordered at ", r.Host)
	}))
	defer server.Close()
	pool, err := upstream.New(upstream.Options{
		Targets: []string{server.URL}, Policy: "least_conn", MaxConns: 16, Retry: "connect",
		ConnectTimeout: time.Second, ResponseTimeout: 5 * time.Second,
		Timeout: 10 * time.Second, IdleConnTimeout: 4 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	var req upstream.Request
	var resp fasthttp.Response
	req.Reset()
	req.HTTP.Header.SetMethod("POST")
	req.HTTP.Header.SetRequestURI("/api/seckill/1001/order")
	req.HTTP.Header.Add("Host", "shop.example")
	req.HTTP.Header.Add("Content-Length", "2")
	req.HTTP.SetBodyString("{}")
	req.Order = true
	outcome := pool.Send(&req, &resp)
	fmt.Println(outcome, resp.StatusCode(), string(resp.Body()))
	// Output: answered 201 ordered at shop.example
}
