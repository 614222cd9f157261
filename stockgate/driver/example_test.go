package driver_test

import (
	"fmt"

	"sluice/stockgate/driver"
)

func Example() {
	// A product that is on sale in several activities: on a cluster its keys must lie together.
	apart := driver.Layout{Driver: "counter_users", Key: "$sku_1:$sku_2:stock", UsersKey: "$sku_1:$sku_2:uids"}
	fmt.Println(apart.Check(true))

	together := driver.Layout{Driver: "counter_users", Key: "{$sku_1}:{$sku_2}:stock", UsersKey: "{$sku_1}:{$sku_2}:uids"}
	fmt.Println(together.Check(true))

	for _, p := range driver.Promises() {
		if p.Driver == together.Driver {
			fmt.Println("one user buys twice:", p.DoubleBuying)
		}
	}
	// Output:
	// in a cluster all keys of a SKU must be in one slot: the shop and Sluice both would have to use key = "{$sku_1}:$sku_2:stock", users_key = "{$sku_1}:$sku_2:uids"
	// <nil>
	// one user buys twice: no
}
