package server

import (
	"net/netip"
	"testing"
)

func TestConn_ParseReadsTheHeadOnce(t *testing.T) {
	c, err := Read(get("A: b"), netip.Addr{}, small)
	if err != nil {
		t.Fatal(err)
	}
	h := &c.Ctx().Request.Header
	if len(h.RawHeaders()) > 0 || c.Parse() != nil || string(h.Peek("A")) != "b" || string(h.Method()) != "GET" {
		t.Errorf("parsed %q", h)
	}
	h.Set("A", "c")
	if c.Parse() != nil || string(h.Peek("A")) != "c" {
		t.Errorf("parsed again: %q", h)
	}
	c.exchange.reset()
	if h := &c.Ctx().Request.Header; len(h.Peek("A")) > 0 || c.exchange.parsed {
		t.Errorf("%q stays for the next request", h)
	}
}

// No head is known that the look accepts and fasthttp does not: this one is damaged behind the look.
func TestConn_ParseFailsWhereFasthttpReadsAnotherHead(t *testing.T) {
	c, err := Read(get("A: b")+get(), netip.Addr{}, small)
	if err != nil {
		t.Fatal(err)
	}
	q := c.Request()
	copy(q.text[q.linesAt:], " ")
	for range 2 {
		if err := c.Parse(); err != otherReading.err() {
			t.Errorf("parsed with %v", err)
		}
	}
	if n := c.server.Stats().ProtocolErrors[otherReading]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	if err := c.exchange.reader.readHead(q); err != otherReading.err() {
		t.Errorf("%v behind it", err)
	}
}
