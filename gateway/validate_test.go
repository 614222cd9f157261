package gateway

import (
	"testing"

	"sluice/config"
)

// What two parts of the check could find is told once.
func TestValidate_TellsEachMistakeOfALimitOnce(t *testing.T) {
	const shop = `upstream.targets = ["http://127.0.0.1:9000"]
stock.source = "off"
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "limit"
sku = "$path_sku"
user = "$cookie_uid"
[[limits.rate]]
name = "each"
rate = "20/s"
burst = 40
`
	for text, want := range map[string]string{
		`key = "all"`: `f:13: limits.rate[1].key: on route "order": "all" is the same for every client; write a ` +
			`variable of the request like "$remote_addr"`,
		`routes = ["orders"]`: `f:13: limits.rate[1].routes[1]: "orders" is no route; write the name of a [[route]]`,
	} {
		_, err := config.Parse("f", []byte(shop+text), func(string) (string, bool) { return "", false }, Validate)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%v", text, err, want)
		}
	}
}
