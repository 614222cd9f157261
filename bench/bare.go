package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// What fasthttp costs by itself: the least that a gate built upon it can cost.

// serve runs a bare server until ctx ends: "bare" answers at once, "naive" forwards whatever comes.
func serve(ctx context.Context, kind, front, shop string) error {
	handlers := map[string]fasthttp.RequestHandler{"bare": refuse, "naive": forwarder(shop)}
	handler := handlers[kind]
	if handler == nil {
		return fmt.Errorf("serve %q: it is bare or naive", kind)
	}
	l, err := net.Listen("tcp", front)
	if err != nil {
		return err
	}
	s := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.ShutdownWithContext(ctx) // a connection that stays open ends with the process
		return nil
	}
}

// refuse answers as a gate does that limits, or has sold out; to the first look, that it is there.
func refuse(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) == readyPath {
		return
	}
	status := fasthttp.StatusTooManyRequests
	if ctx.IsPost() {
		status = fasthttp.StatusConflict
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/problem+json")
	ctx.SetBodyString(`{"type":"about:blank","title":"Too Many Requests","status":429}`)
}

// forwarder hands every request to the shop, and its answer back, without a question.
func forwarder(shop string) fasthttp.RequestHandler {
	client := &fasthttp.HostClient{Addr: shop, MaxConns: 4096, MaxIdleConnDuration: 60 * time.Second, NoDefaultUserAgentHeader: true}
	return func(ctx *fasthttp.RequestCtx) {
		if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}
}
