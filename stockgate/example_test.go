package stockgate_test

import (
	"context"
	"fmt"
	"time"

	"sluice/proxy/reject"
	"sluice/stockgate"
)

// One unit is left, and two people want it.
func Example() {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }

	stock := stockgate.NewMemory()
	_ = stock.Set(context.Background(), "1001", 1)

	gate, err := stockgate.New(stockgate.Options{Now: now, Wait: 20 * time.Second}, stock)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	fmt.Println("first admitted:", gate.Enter(now(), []byte("1001"), nil) == reject.Admitted)
	stock.Sell("1001", 1) // the shop sells it
	gate.Leave([]byte("1001"))

	for gate.Closed(now(), []byte("1001")) != reject.SoldOut {
		time.Sleep(time.Millisecond) // the poller reads the stock: at most two refreshes
	}
	fmt.Println("second sold out:", gate.Enter(now(), []byte("1001"), nil) == reject.SoldOut)
	// Output:
	// first admitted: true
	// second sold out: true
}
