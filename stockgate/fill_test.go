package stockgate

import (
	"reflect"
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
		there []any    // what may be there already
		read  []any    // reads that
		keys  []string // of the shop
	}{
		"counter": {layout.Options{Type: layout.Counter, Key: "stock:$sku"}, []any{"set", "stock:y", 0},
			[]any{"get", "stock:y"}, []string{"stock:x", "stock:y", "stock:z"}},
		"below": {layout.Options{Type: layout.Counter, Key: "stock:$sku", SoldOutAt: -1}, []any{"set", "stock:y", 0},
			[]any{"get", "stock:y"}, []string{"stock:x", "stock:y", "stock:z"}},
		"hash_left": {layout.Options{Type: layout.HashLeft, Key: "all", LeftField: "$sku"}, []any{"hset", "all", "y", 0},
			[]any{"hget", "all", "y"}, []string{"all"}},
		"hash_sold": {layout.Options{Type: layout.HashSold, Key: "$sku", TotalField: "total", SoldField: "sold"},
			[]any{"hset", "y", "sold", 2}, []any{"hvals", "y"}, []string{"x", "y", "z"}},
		"list": {layout.Options{Type: layout.List, Key: "{$sku}:goods"}, []any{"rpush", "{y}:goods", "a"},
			[]any{"lrange", "{y}:goods", 0, -1}, []string{"{x}:goods", "{y}:goods", "{z}:goods"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, shape.o)
			monday, tuesday := time.Unix(1000, 0), time.Unix(2000, 0)
			fill := func(sku, sale string, now, ends time.Time, want layout.Filled) {
				t.Helper()
				f := layout.Filling{Sale: sale, Ends: ends, Units: 3, Write: true, Now: now, Keep: time.Hour}
				if done, err := s.Fill(t.Context(), sku, f); err != nil || done != want {
					t.Fatalf("fill %s for %s: %v, %v, want %v", sku, sale, done, err, want)
				}
			}
			fill("x", "monday", time.Unix(1, 0), monday, layout.Written)
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || out[0].Free != 3 || !out[0].Exists {
				t.Errorf("who reads the layout: %+v, %v", out[0], err)
			}
			fill("x", "monday", time.Unix(1, 0), monday, layout.Before)
			server.Client.Do(t.Context(), shape.there...)
			before := server.Client.Do(t.Context(), shape.read...).Val()
			fill("y", "monday", time.Unix(1, 0), monday, layout.There)
			if after := server.Client.Do(t.Context(), shape.read...).Val(); !reflect.DeepEqual(after, before) {
				t.Errorf("%v became %v", before, after)
			}
			server.Client.Del(t.Context(), shape.keys...) // all is sold
			fill("x", "monday", time.Unix(500, 0), tuesday, layout.Moved)
			fill("y", "monday", time.Unix(1500, 0), tuesday, layout.Moved)
			fill("x", "tuesday", time.Unix(999, 0), tuesday, layout.Later)
			fill("x", "tuesday", time.Unix(1000, 0), tuesday, layout.Written)
			server.Client.Del(t.Context(), shape.keys...)
			begun := layout.Filling{Sale: "begun", Ends: tuesday, Units: 3, Now: time.Unix(1, 0), Keep: time.Hour}
			if done, err := s.Fill(t.Context(), "z", begun); err != nil || done != layout.There {
				t.Fatalf("a sale that has begun: %v, %v", done, err)
			}
			fill("z", "begun", time.Unix(1, 0), monday, layout.Moved) // it is postponed
			if n := server.Client.Exists(t.Context(), shape.keys...).Val(); n != 0 {
				t.Errorf("%d keys were written for a sale that had begun", n)
			}
		})
	}
}

func TestFill_LeavesAForeignKeyWhole(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku"})
	server.Client.HSet(t.Context(), "stock:x", "a", 1)
	if filled, err := s.Fill(t.Context(), "x", layout.Filling{Sale: "monday", Units: 3, Write: true}); err == nil ||
		filled == layout.Written {
		t.Errorf("filled %v, %v", filled, err)
	}
	if got := server.Client.HGet(t.Context(), "stock:x", "a").Val(); got != "1" {
		t.Errorf("the hash holds %q", got)
	}
}

// Each change is written once. What none of the instances has opened is not closed.
func TestSetStatus_WritesEachChangeOnce(t *testing.T) {
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
				if m, err := s.SetStatus(t.Context(), "x", layout.StatusChange{Open: true}); err == nil || m.Written {
					t.Errorf("without the hash: %+v, %v", m, err)
				}
			}
			if _, err := s.Fill(t.Context(), "x", layout.Filling{Sale: "monday", Units: 3, Write: true}); err != nil {
				t.Fatal(err)
			}
			for i, step := range []struct {
				open, written bool
				value         any
			}{{false, false, nil}, {true, true, "1"}, {true, false, "1"}, {false, true, "0"}, {false, false, "0"},
				{true, true, "1"}} {
				m, err := s.SetStatus(t.Context(), "x", layout.StatusChange{Open: step.open})
				if err != nil || m.Written != step.written || m.Open != step.open {
					t.Fatalf("step %d: %+v, %v", i, m, err)
				}
				if got := server.Client.Do(t.Context(), shape.read...).Val(); got != step.value {
					t.Errorf("step %d: it is %v, want %v", i, got, step.value)
				}
			}
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || !out[0].OnSale || out[0].Free != 3 {
				t.Errorf("who reads the layout: %+v, %v", out[0], err)
			}
		})
	}
}
