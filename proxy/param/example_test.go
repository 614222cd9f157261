package param_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// The key of a rate limit has each part with its length, so that no two keys are put together to the same. Literals do
// not tell requests apart.
func ExampleVariable_Parts() {
	v, err := param.Compile("$remote_addr/$arg_q", nil)
	if err != nil {
		panic(err)
	}
	client := netip.MustParseAddr("203.0.113.9")
	x, err := server.Read("GET /?q=%31 HTTP/1.1\r\nHost: s\r\n\r\n", client, server.Limits{})
	if err != nil {
		panic(err)
	}
	s := &param.Source{Head: x.Request(), Query: []byte("q=%31"), ClientAddr: client}
	var key []byte
	for i := range v.Parts() {
		switch p := &v.Parts()[i]; p.Kind() {
		case param.Literal:
		case param.RemoteAddr:
			network, _ := s.ClientAddr.Prefix(24)
			key = network.Masked().AppendTo(key)
		default:
			value, fault := p.Lookup(s)
			if fault.Reason != reject.Admitted || len(value) == 0 {
				fmt.Println("not counted:", fault.Detail)
				return
			}
			key = binary.LittleEndian.AppendUint32(append(key, value...), uint32(len(value)))
		}
	}
	fmt.Printf("%q\n", key)
	// Output: "203.0.113.0/241\x01\x00\x00\x00"
}
