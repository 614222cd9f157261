package config_test

import (
	"fmt"

	"sluice/config"
)

func Example() {
	text := `
[upstream]
targets = ["http://127.0.0.1:9000"]

[limits.window]
maximum = 20

[[route]]
name  = "order"
match = "POST /order/{sku}"
gate  = "check"
sku   = "$path_sku"
quantity = 2
`
	_, err := config.Parse("config.toml", []byte(text), nil)
	fmt.Println(err)
	// Output:
	// config.toml:6: limits.window.maximum: unknown key; did you mean "max"?
	// config.toml:13: route[1].quantity: wants a string, not a whole number; write "2"
}
