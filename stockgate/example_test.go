package stockgate_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sluice/proxy/reject"
	"sluice/stockgate"
	"sluice/stockgate/layout"
)

// shelf is the stock of every SKU.
type shelf struct{ left atomic.Int64 }

func (s *shelf) Read(_ context.Context, skus []string, out []layout.Reading) error {
	for i := range skus {
		out[i] = layout.Reading{Left: s.left.Load(), Free: s.left.Load(), Exists: true, OnSale: true}
	}
	return nil
}

func (s *shelf) ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error {
	return s.Read(ctx, skus, out)
}

func (s *shelf) Ping(context.Context) error { return nil }

// One unit is left, and two people want it.
func Example() {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }

	var stock shelf
	stock.left.Store(1)

	gate, err := stockgate.New(stockgate.Options{Now: now, Wait: 20 * time.Second}, &stock)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	fmt.Println("first admitted:", gate.Enter(now(), []byte("1001"), nil) == reject.Admitted)
	stock.left.Add(-1) // the shop sells it
	gate.Leave([]byte("1001"))

	for gate.Closed(now(), []byte("1001")) != reject.SoldOut {
		time.Sleep(time.Millisecond) // the poller reads the stock: at most two refreshes
	}
	fmt.Println("second sold out:", gate.Enter(now(), []byte("1001"), nil) == reject.SoldOut)
	// Output:
	// first admitted: true
	// second sold out: true
}
