package stockgate

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

func TestMirror_NeverGoesBack(t *testing.T) {
	for name, shape := range map[string]struct {
		o    layout.Options
		fill []any
		read []any
		show func(left string) string
	}{
		"counter": {layout.Options{Type: layout.Counter, Key: "stock:$sku", Prefix: "p:"}, nil,
			[]any{"get", "p:stock:x"}, nil},
		"counter_users": {layout.Options{Type: layout.CounterUsers, Key: "{$sku}:stock", UsersKey: "{$sku}:uids"},
			[]any{"set", "{x}:stock", 3}, []any{"get", "{x}:stock"}, nil},
		"hash_left": {layout.Options{Type: layout.HashLeft, Key: "$sku", LeftField: "inStock"},
			[]any{"hset", "x", "name", "tea"}, []any{"hget", "x", "inStock"}, nil},
		"hash_sold": {layout.Options{Type: layout.HashSold, Key: "$sku", TotalField: "total", SoldField: "ordered"},
			[]any{"hset", "x", "total", 10, "ordered", 0}, []any{"hget", "x", "ordered"},
			func(left string) string { return map[string]string{"7": "3", "8": "2", "0": "10"}[left] }},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, shape.o)
			if shape.fill != nil {
				server.Client.Do(t.Context(), shape.fill...)
			}
			for i, step := range []struct {
				free, epoch, ver int64
				written          bool
				left             string
			}{{7, 5, 2, true, "7"}, {9, 5, 1, false, "7"}, {9, 5, 2, false, "7"}, {9, 4, 99, false, "7"}, {8, 6, 1, true, "8"},
				{-3, 6, 10, true, "0"}} {
				written, err := s.Mirror(t.Context(), "x", step.free, step.epoch, step.ver)
				if err != nil || written != step.written {
					t.Fatalf("step %d: %v, %v", i, written, err)
				}
				want := step.left
				if shape.show != nil {
					want = shape.show(want)
				}
				if got := server.Client.Do(t.Context(), shape.read...).Val(); got != want {
					t.Errorf("step %d: shows %v, want %s", i, got, want)
				}
			}
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || out[0].Free != 0 || !out[0].Exists {
				t.Errorf("who reads the layout: %+v, %v", out[0], err)
			}
		})
	}
}

// Who gives both keys an end keeps it: the version beside the stock is not to outlive it.
func TestMirror_KeepsTheEndOfItsKeys(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku"})
	for ver := range int64(2) {
		if _, err := s.Mirror(t.Context(), "x", 5-ver, 1, ver); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"stock:x", layout.Beside("", "stock:x")} {
			if ver == 0 {
				server.Client.Expire(t.Context(), key, time.Hour)
			} else if ttl := server.Client.TTL(t.Context(), key).Val(); ttl <= 0 {
				t.Errorf("%s: time to live %v", key, ttl)
			}
		}
	}
}

func TestMirror_ShowsWhatAReaderOfTheLayoutFindsFree(t *testing.T) {
	for _, at := range []int64{-1, 5} {
		s := dial(t, redistest.Start(t), layout.Options{Type: layout.Counter, Key: "stock:$sku", SoldOutAt: at})
		for ver, free := range []int64{3, 0} {
			if _, err := s.Mirror(t.Context(), "x", free, 1, int64(ver)+1); err != nil {
				t.Fatal(err)
			}
			var out [1]layout.Reading
			if err := s.Read(t.Context(), []string{"x"}, out[:]); err != nil || out[0].Free != free {
				t.Errorf("sold_out_at %d, %d free: %+v, %v", at, free, out[0], err)
			}
		}
	}
}

func TestMirror_LeavesKeysOfAnotherTypeWhole(t *testing.T) {
	server := redistest.Start(t)
	for _, c := range []struct {
		o    layout.Options
		fill []any
	}{
		{layout.Options{Type: layout.Counter, Key: "stock:$sku"}, []any{"hset", "stock:x", "a", 1}},
		{layout.Options{Type: layout.HashLeft, Key: "left:$sku", LeftField: "n"}, []any{"set", "left:x", 1}},
		{layout.Options{Type: layout.HashSold, Key: "sold:$sku", TotalField: "total", SoldField: "sold"},
			[]any{"hset", "sold:x", "sold", 1}},
		{layout.Options{Type: layout.HashSold, Key: "many:$sku", TotalField: "total", SoldField: "sold"},
			[]any{"hset", "many:x", "total", "many", "sold", 1}},
	} {
		s := dial(t, server, c.o)
		key := c.fill[1].(string)
		server.Client.Do(t.Context(), c.fill...)
		before := server.Client.Dump(t.Context(), key).Val()
		if written, err := s.Mirror(t.Context(), "x", 3, 1, 1); err == nil || written {
			t.Errorf("%s: %v, %v", key, written, err)
		}
		if server.Client.Dump(t.Context(), key).Val() != before {
			t.Errorf("%s was changed", key)
		}
	}
	s := dial(t, server, layout.Options{Type: layout.List, Key: "list:$sku"})
	if _, err := s.Mirror(t.Context(), "x", 3, 1, 1); err == nil {
		t.Error("a list was written")
	}
}
