package demo_test

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"sluice/internal/demo"
	"sluice/internal/load"
)

// shelf is a stock of one SKU.
type shelf struct{ left atomic.Int64 }

func (s *shelf) take(context.Context) (bool, error) {
	return s.left.Add(-1) >= 0, nil
}

// Without a gate the crowd comes in at the shop itself; with one, Front is the gate's address.
func ExampleCrowd_Run() {
	stock := &shelf{}
	stock.left.Store(5)
	shop, err := demo.OpenShop(load.ShopOptions{Units: 5, Take: stock.take, Capacity: 2,
		Latency: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shop.Close()

	crowd := demo.Crowd{Front: shop.Addr(), Shoppers: 20, Spread: 10 * time.Millisecond}
	report, err := crowd.Run(context.Background(), shop, io.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("sold", report.Shop.Orders, "oversold", report.Shop.Oversold, "broken promises:", report.Err())
	// Output: sold 5 oversold 0 broken promises: <nil>
}
