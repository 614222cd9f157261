package route_test

import (
	"fmt"

	"sluice/proxy/route"
)

func ExampleTable_Match() {
	var patterns []route.Pattern
	for _, text := range []string{"POST /order/{sku}", "/"} {
		p, err := route.ParsePattern(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		patterns = append(patterns, p)
	}
	table := route.NewTable(patterns, []route.Guard{route.GuardsStock, route.Unguarded})
	for _, path := range []string{"/order/1001", "/a%2Fb", "/x/../order/1001"} {
		m, detail := table.Match(route.Query{Method: []byte("POST"), Path: []byte(path)})
		fmt.Printf("%s: %v, sku %q, cause %q\n", path, patterns[m.Index], m.Captures[0], detail)
	}
	// Output:
	// /order/1001: POST /order/{sku}, sku "1001", cause ""
	// /a%2Fb: /, sku "", cause ""
	// /x/../order/1001: POST /order/{sku}, sku "", cause "path is not canonical: write it as POST /order/{sku} does"
}
