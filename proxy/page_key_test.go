package proxy

import (
	"net/netip"
	"testing"

	"sluice/proxy/server"
)

// askedWith is a request for a page with one more header line.
func askedWith(t *testing.T, field string) *server.Conn {
	t.Helper()
	limits := server.Limits{Header: 32 << 10, Target: 8 << 10}
	x, err := server.Read("GET /page?a=1 HTTP/1.1\r\nHost: shop\r\n"+field+"\r\n\r\n", netip.Addr{}, limits)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Fields by which frameworks choose a part of a page, or its data, and which shops forget in Vary.
func TestBypassesCache_WhatFrameworksBranchOn(t *testing.T) {
	for _, field := range []string{"RSC: 1", "rsc: 1", "Next-Router-Prefetch: 1", "Next-Url: /x",
		"HX-Request: true", "HX-Target: a", "X-Inertia: true", "X-Inertia-Version: 1",
		"X-Requested-With: XMLHttpRequest", "X_Requested_With: XMLHttpRequest",
		"Turbo-Frame: cart", "X-PJAX: true", "X-PJAX-Container: a", "Origin: https://a.example"} {
		if !bypassesCache(askedWith(t, field).Request()) {
			t.Errorf("%s: it may be answered from memory", field)
		}
	}
	for _, field := range []string{"Accept: */*", "Hx: 1", "Turbo: 1", "X-Requested: 1"} {
		if bypassesCache(askedWith(t, field).Request()) {
			t.Errorf("%s: it is not answered from memory", field)
		}
	}
}

// A page's address as a trusted proxy tells it is a part of the key; which client it is for is not.
func TestPageKey_KnowsTheAddressAndNotTheClient(t *testing.T) {
	at := pageSite{Scheme: []byte("https"), Host: []byte("shop"), Route: []byte("shop"), Trusted: true,
		ClientHeader: "X-Forwarded-For"}
	key := func(field string) string { return string(appendPageKey(nil, askedWith(t, field).Request(), at)) }
	plain := key("Accept: */*")
	for field, same := range map[string]bool{
		"X-Forwarded-For: 1.2.3.4":           true,
		"X-Forwarded-Prefix: /en":            false,
		"SCRIPT_NAME: /en":                   false,
		"Forwarded: for=1.2.3.4;by=5.6.7.8":  true,
		"Forwarded: for=1.2.3.4;host=other":  false,
		"Forwarded: for=1.2.3.4;by=a=b;by=c": false,
	} {
		if got := key(field); (got == plain) != same {
			t.Errorf("%s: the key is %q, without it %q", field, got, plain)
		}
	}
	at.Trusted = false
	if got := key("X-Forwarded-Prefix: /en"); got != plain {
		t.Errorf("a client that is not trusted has chosen the key %q", got)
	}
}
