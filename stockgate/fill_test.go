package stockgate

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

// A shop without stock of a SKU is filled, one with stock of any kind is left as it is, and a list that was sold out
// meanwhile is not filled again for the same sale.
func TestFill_NeverWritesOverWhatIsThere(t *testing.T) {
	for name, shape := range map[string]struct {
		o     layout.Options
		there []any // what may be there already
	}{
		"counter":   {layout.Options{Type: layout.Counter, Key: "stock:$sku"}, []any{"set", "stock:y", 0}},
		"below":     {layout.Options{Type: layout.Counter, Key: "stock:$sku", SoldOutAt: -1}, []any{"set", "stock:y", 0}},
		"hash_left": {layout.Options{Type: layout.HashLeft, Key: "all", LeftField: "$sku"}, []any{"hset", "all", "y", 0}},
		"hash_sold": {layout.Options{Type: layout.HashSold, Key: "$sku", TotalField: "total", SoldField: "sold"},
			[]any{"hset", "y", "sold", 2}},
		"list": {layout.Options{Type: layout.List, Key: "{$sku}:goods"}, []any{"rpush", "{y}:goods", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, shape.o)
			fill := func(sku, id string, want bool) {
				t.Helper()
				if filled, err := s.Fill(t.Context(), sku, 3, id, time.Hour); err != nil || filled != want {
					t.Fatalf("fill %s for %s: %v, %v", sku, id, filled, err)
				}
			}
			fill("x", "monday", true)
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || out[0].Free != 3 || !out[0].Exists {
				t.Errorf("who reads the layout: %+v, %v", out[0], err)
			}
			fill("x", "monday", false)
			fill("x", "tuesday", false)
			server.Client.Do(t.Context(), shape.there...)
			before := server.Client.DBSize(t.Context()).Val()
			fill("y", "monday", false)
			if name != "list" {
				if after := server.Client.DBSize(t.Context()).Val(); after != before {
					t.Errorf("%d keys became %d", before, after)
				}
				return
			}
			server.Client.Del(t.Context(), "{x}:goods", "{y}:goods") // all is sold
			fill("x", "tuesday", false)
			fill("y", "monday", false)
			fill("y", "tuesday", true)
		})
	}
}

func TestFill_LeavesAForeignKeyWhole(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku"})
	server.Client.HSet(t.Context(), "stock:x", "a", 1)
	if filled, err := s.Fill(t.Context(), "x", 3, "monday", time.Hour); err == nil || filled {
		t.Errorf("filled %v, %v", filled, err)
	}
	if got := server.Client.HGet(t.Context(), "stock:x", "a").Val(); got != "1" {
		t.Errorf("the hash holds %q", got)
	}
}

func TestSetStatus_AnEarlierChangeNeverOverwritesALaterOne(t *testing.T) {
	for name, shape := range map[string]struct {
		o    layout.Options
		read []any
	}{
		"key": {layout.Options{Type: layout.Counter, Key: "stock:$sku", StatusKey: "status:$sku"}, []any{"get", "status:x"}},
		"field": {layout.Options{Type: layout.HashLeft, Key: "goods:$sku", LeftField: "left", StatusField: "on"},
			[]any{"hget", "goods:x", "on"}},
		"one hash": {layout.Options{Type: layout.HashLeft, Key: "goods", LeftField: "$sku", StatusField: "$(sku)_on"},
			[]any{"hget", "goods", "x_on"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			shape.o.StatusOpen, shape.o.StatusClosed = []string{"1", "on"}, "0"
			s := dial(t, server, shape.o)
			if name != "key" {
				if written, err := s.SetStatus(t.Context(), "x", true, 1); err == nil || written {
					t.Errorf("without the hash: %v, %v", written, err)
				}
			}
			if _, err := s.Fill(t.Context(), "x", 3, "monday", time.Hour); err != nil {
				t.Fatal(err)
			}
			for i, step := range []struct {
				open    bool
				since   int64
				written bool
				value   string
			}{{true, 10, true, "1"}, {false, 20, true, "0"}, {true, 10, false, "0"}, {true, 20, false, "0"},
				{true, 30, true, "1"}} {
				written, err := s.SetStatus(t.Context(), "x", step.open, step.since)
				if err != nil || written != step.written {
					t.Fatalf("step %d: %v, %v", i, written, err)
				}
				if got := server.Client.Do(t.Context(), shape.read...).Val(); got != step.value {
					t.Errorf("step %d: it is %v, want %s", i, got, step.value)
				}
			}
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || !out[0].OnSale || out[0].Free != 3 {
				t.Errorf("who reads the layout: %+v, %v", out[0], err)
			}
		})
	}
}
