package proxy

import (
	"testing"

	"sluice/proxy/route"
)

func TestFaults_ArePatternsAndConstantsThatMatchNothing(t *testing.T) {
	const uid = "$cookie_uid"
	for _, tt := range []struct{ match, sku, user, key, want string }{
		{"POST /orders/:sku", "$path_sku", uid, "match",
			`"POST /orders/:sku": ":sku" stands for itself alone: write "POST /orders/{sku}"`},
		{"POST orders/{sku}", "$path_sku", uid, "match",
			`"POST orders/{sku}": "orders" is not a host name: write "POST /orders/{sku}"`},
		{"POST /orders", "json_id", uid, "sku", `"json_id" is the same for every request: write "$json_id"`},
		{"POST /orders/{sku}", "{sku}", uid, "sku", `"{sku}" is the same for every request: write "$path_sku"`},
		{"POST /orders", "$json_id", "cookie_uid", "user",
			`"cookie_uid" is the same for every request: write "$cookie_uid"`},
		{"POST /orders", "$json_id", "guest", "user",
			`"guest" is the same for every request: all clients would be one user; write a variable like $cookie_uid`},
		{"POST /orders", "1001", uid, "", ""}, // a route that sells one SKU
	} {
		order := Route{Name: "order", Match: tt.match, Gate: route.Check, SKU: tt.sku, User: tt.user}
		errs := Faults(Options{Routes: []Route{order}})
		if tt.want == "" {
			if len(errs) != 0 {
				t.Errorf("%+v: %v", tt, errs)
			}
			continue
		}
		if len(errs) != 1 {
			t.Errorf("%+v: %v", tt, errs)
			continue
		}
		if at, ok := errs[0].(*route.Error); !ok || at.Key != tt.key || at.Err.Error() != tt.want {
			t.Errorf("%v, want %s: %s", errs[0], tt.key, tt.want)
		}
	}
}

// A route that is there twice is dropped: no order of the two helps.
func TestFaults_RouteThatNeverMatchesIsToldWhatHelps(t *testing.T) {
	for first, want := range map[string]string{
		"POST /order/{sku}": `can never match: it is the same as that of route "first"; drop one`,
		"/":                 `can never match: route "first" before it takes every such request; write the narrow route first`,
	} {
		errs := Faults(Options{Routes: []Route{{Name: "first", Match: first, Gate: route.Pass},
			{Name: "order", Match: "POST /order/{sku}", Gate: route.Pass}}})
		if len(errs) != 1 || errs[0].(*route.Error).Err.Error() != want {
			t.Errorf("%v, want %s", errs, want)
		}
	}
}
