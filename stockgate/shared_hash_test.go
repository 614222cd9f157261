package stockgate

import (
	"errors"
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

func sharedHash() layout.Options {
	return layout.Options{Type: layout.HashSold, Key: "seckill:stocks", TotalField: "$sku", SoldField: "$(sku)_sold",
		StatusField: "$(sku)_on", StatusOpen: []string{"", "yes"}}
}

func TestSharedHash_OneCommandReadsAllSKUs(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, sharedHash())
	var skus []string
	for i := range readAtOnce {
		skus = append(skus, fmt.Sprint(1000+i))
		setUp(t, server, fmt.Sprintf("HSET seckill:stocks %d %d %d_sold 1", 1000+i, i+1, 1000+i))
	}
	setUp(t, server, "HSET seckill:stocks 1000_on no 1001_sold many other 5", "HDEL seckill:stocks 1002_sold")
	out := make([]layout.Reading, len(skus)+2)
	calls := server.Calls("hmget")
	testkit.Check(t, s.ReadUncached(t.Context(), append(skus, "none", "1003_sold"), out))
	if n := server.Calls("hmget") - calls; n != 1 {
		t.Errorf("%d HMGETs for %d SKUs", n, len(skus))
	}
	if out[0].OnSale || out[0].Left != 0 || out[1].Fault == nil || out[2].Fault == nil {
		t.Errorf("%+v", out[:3])
	}
	for i, r := range out[3:len(skus)] {
		if r != reading(int64(i+3)) {
			t.Fatalf("%s: %+v", skus[i+3], r)
		}
	}
	for _, r := range out[len(skus):] {
		if r.Exists || r.Fault != nil {
			t.Errorf("no SKU reads %+v", r)
		}
	}
	setUp(t, server, "DEL seckill:stocks", "SET seckill:stocks 5")
	testkit.Check(t, s.Read(t.Context(), skus, out))
	if out[0].Fault == nil || out[7].Fault == nil {
		t.Errorf("a string reads %+v", out[0])
	}
}

func TestSharedHash_OperatorsWriteAndListOneSKU(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, sharedHash())
	testkit.Check(t, s.Set(t.Context(), "1001", 5))
	testkit.Check(t, s.Set(t.Context(), "1002", 7))
	if left := testkit.Must[int64](t)(s.Add(t.Context(), "1002", 3)); left != 10 {
		t.Errorf("%d left, want 10", left)
	}
	if _, err := s.Add(t.Context(), "1003", 3); !errors.Is(err, ErrUnknownSKU) {
		t.Errorf("add to an unknown SKU: %v", err)
	}
	if err := s.Set(t.Context(), "1001_sold", 3); !errors.Is(err, layout.ErrNotWritable) {
		t.Errorf("set what is sold of another SKU: %v", err)
	}
	all := testkit.Must[[]Stock](t)(s.List(t.Context(), 10))
	if len(all) != 2 || all[0].SKU != "1001" || all[0].Left != 5 || all[1].SKU != "1002" || all[1].Left != 10 {
		t.Errorf("listed %+v", all)
	}
	for _, c := range []struct {
		sku  string
		free int64
		want string
	}{{"1001", 2, "3"}, {"1002", 4, "6"}} {
		if written, err := s.Mirror(t.Context(), c.sku, c.free, 1, 1); !written || err != nil {
			t.Errorf("%s: written %v, %v", c.sku, written, err)
		}
		if got := server.Client.HGet(t.Context(), "seckill:stocks", c.sku+"_sold").Val(); got != c.want {
			t.Errorf("%s: %s sold, want %s", c.sku, got, c.want)
		}
	}
}

func TestSharedHash_APartOfTheSKUMayChooseTheHash(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := clustered(t, nodes, layout.Options{Type: layout.HashLeft, Key: "act:$sku_1", LeftField: "good:$sku_2"})
	var skus []string
	for i := range 40 {
		skus = append(skus, fmt.Sprintf("%d:%d", i%5, i))
		testkit.Check(t, r.Set(t.Context(), skus[i], int64(i+1)))
	}
	out := make([]layout.Reading, len(skus))
	testkit.Check(t, r.Read(t.Context(), skus, out))
	for i, found := range out {
		if found != reading(int64(i+1)) {
			t.Fatalf("%s: %+v", skus[i], found)
		}
	}
}
