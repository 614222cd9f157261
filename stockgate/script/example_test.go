package script_test

import (
	"fmt"
	"strings"

	"sluice/stockgate/script"
)

func Example() {
	// A product that is on sale in several activities: on a cluster its keys must lie together.
	d := script.Definition{Preset: "counter_users", Keys: []string{"$sku_1:$sku_2:stock", "$sku_1:$sku_2:uids"}}
	apart, _ := script.Compile(d)
	_, instead, _ := strings.Cut(apart.OneSlot().Error(), " would have to use ")
	fmt.Println(instead)

	d.Keys = []string{"{$sku_1}:{$sku_2}:stock", "{$sku_1}:{$sku_2}:uids"}
	together, _ := script.Compile(d)
	fmt.Println(together.OneSlot(), together.Keys("good:activity"))
	// Output:
	// keys[1] = "{$sku_1}:$sku_2:stock", keys[2] = "{$sku_1}:$sku_2:uids"
	// <nil> [{good}:{activity}:stock {good}:{activity}:uids]
}
