package http1_test

import (
	"errors"
	"fmt"
	"strings"

	"sluice/proxy/http1"
)

func Example() {
	guard := http1.NewGuard(http1.Limits{Header: 16 << 10, Target: 8 << 10})
	socket := strings.NewReader("GET /stock HTTP/1.1\r\nHost: shop\r\n\r\n" +
		"POST /order HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsku\r\n3\r\n=10\r\n0\r\n\r\n" +
		"POST /order HTTP/1.1\r\nHost: shop\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")
	r := guard.NewReader(socket)
	p := make([]byte, 4096)
	var head http1.Request
	for {
		err := r.ReadHead(&head)
		if v, ok := errors.AsType[http1.Violation](err); ok {
			fmt.Println(v.Status, v.Kind)
			return
		}
		fmt.Printf("%s %s of %s\n", head.Method(), head.Target(), head.Host())
		for n := 0; err == nil; {
			if n, err = r.ReadBody(p); n > 0 {
				fmt.Printf("\t%q\n", p[:n])
			}
		}
	}
	// Output:
	// GET /stock of shop
	// POST /order of shop
	// 	"sku"
	// 	"=10"
	// 400 te_and_cl
}
