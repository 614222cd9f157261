package ledger

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// oneSegment reports whether a URL asks for serial in the one place where it belongs.
func oneSegment(text, serial string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	path := u.EscapedPath()
	middle := strings.TrimSuffix(strings.TrimPrefix(path, "/orders/"), "/status")
	plain, err := url.PathUnescape(middle)
	return err == nil && plain == serial && !strings.Contains(middle, "/") && u.Host == "shop.example" &&
		u.Fragment == ""
}

func asked(t *testing.T, pattern string, handle http.HandlerFunc) (*StatusURL, context.Context) {
	t.Helper()
	leakless(t)
	shop := httptest.NewServer(handle)
	t.Cleanup(shop.Close)
	s, err := NewStatusURL(shop.URL + pattern)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, t.Context()
}

func TestStatusURL_StatusSaysWhetherTheOrderExists(t *testing.T) {
	status := http.StatusOK
	s, ctx := asked(t, "/orders/{serial}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/login")
		w.WriteHeader(status)
	})
	for code, want := range map[int]OrderStatus{200: OrderExists, 404: OrderNotFound, 201: OrderUnknown,
		204: OrderUnknown, 301: OrderUnknown,
		302: OrderUnknown, 400: OrderUnknown, 401: OrderUnknown, 410: OrderUnknown,
		429: OrderUnknown, 500: OrderUnknown, 503: OrderUnknown} {
		status = code
		got, err := s.Ask(ctx, "1001", "abc")
		if err != nil || got != want {
			t.Errorf("%d: %v, %v, want %v", code, got, err, want)
		}
	}
}

func TestStatusURL_SerialCannotLeaveItsPlaceInTheURL(t *testing.T) {
	var path, query string
	for _, pattern := range []string{"/orders/{serial}/status", "/orders/x/status?by={serial}&of=1"} {
		s, ctx := asked(t, pattern, func(w http.ResponseWriter, r *http.Request) {
			path, query = r.URL.EscapedPath(), r.URL.RawQuery
		})
		for _, serial := range []string{"../admin", "a/b", "a?b=c", "a#b", "a%2Fb", "a&of=2", "a+b", "a;b", "...",
			"@evil", "\\..\\"} {
			if _, err := s.Ask(ctx, "1001", serial); err != nil {
				t.Fatal(err)
			}
			escaped := url.QueryEscape(serial)
			if path+"?"+query != strings.Replace(pattern, "{serial}", escaped, 1)+map[bool]string{true: "?"}[query == ""] {
				t.Errorf("%q: asked for %s?%s", serial, path, query)
			}
			if plain, err := url.PathUnescape(escaped); err != nil || plain != serial {
				t.Errorf("%q: a path reads %q", serial, plain)
			}
		}
	}
}

func TestStatusURL_ShopThatCannotBeReachedKnowsNothing(t *testing.T) {
	s, ctx := asked(t, "/orders/{serial}", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	if got, err := s.Ask(ctx, "1001", "abc"); err == nil || got != OrderUnknown {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.Ask(ctx, "1001", ".."); err == nil || got != OrderUnknown {
		t.Errorf("a serial that is none: %v, %v", got, err)
	}
}

func TestStatusURL_EndlessAnswerIsNotRead(t *testing.T) {
	s, ctx := asked(t, "/orders/{serial}", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	if got, err := s.Ask(ctx, "1001", "abc"); err != nil || got != OrderExists {
		t.Errorf("%v, %v", got, err)
	}
}

func TestStatusURL_NeedsAHostAndOnePlace(t *testing.T) {
	for _, text := range []string{"", "http://shop/orders", "http://shop/{serial}/{serial}", "ftp://shop/{serial}",
		"/orders/{serial}",
		"http://{serial}/orders", "http://shop{serial}/orders", "http://{serial}.shop/", "http://user:{serial}@shop/x",
		"://{serial}", "http:///{serial}",
		"http://shop/{sku}", "http://shop/{sku}/{sku}/{serial}", "http://{sku}.shop/{serial}",
		"http://shop{sku}/{serial}", "http://u:{sku}@shop/{serial}"} {
		if _, err := NewStatusURL(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Clients choose keys: the same one may be an order's of each of two SKUs.
func TestStatusURL_ShopIsAskedForTheOrderOfItsSKUWhereTheURLNamesIt(t *testing.T) {
	var asks string
	for _, pattern := range []string{"/skus/{sku}/orders/{serial}", "/orders/{serial}?of={sku}"} {
		s, ctx := asked(t, pattern, func(w http.ResponseWriter, r *http.Request) { asks = r.URL.RequestURI() })
		for _, sku := range []string{"1001", "红/1", "a?b", "{serial}", "a&b=c", "a%2Fb"} {
			want := strings.NewReplacer("{sku}", url.QueryEscape(sku), "{serial}", "%7Bsku%7D").Replace(pattern)
			if _, err := s.Ask(ctx, sku, "{sku}"); err != nil || asks != want {
				t.Errorf("%q: asked for %s, not %s: %v", sku, asks, want, err)
			}
		}
	}
	s, ctx := asked(
		t,
		"/skus/{sku}/orders/{serial}",
		func(http.ResponseWriter, *http.Request) { t.Error("another place was asked") },
	)
	for _, sku := range []string{".", ".."} {
		if v, err := s.Ask(ctx, sku, "abc"); err == nil || v != OrderUnknown {
			t.Errorf("%q: %v", sku, v)
		}
	}
}
