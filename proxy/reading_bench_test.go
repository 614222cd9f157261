package proxy

import (
	"strings"
	"testing"
)

// What the most laborious paths cost.
func BenchmarkReadings(b *testing.B) {
	for name, path := range map[string]string{
		"escaped":  "/search/%E4%B8%AD%E6%96%87",
		"all ways": "/" + strings.Repeat("a%2525252f%25253b%25253f%25255c/", 15),
		"long":     "/" + strings.Repeat("%25253b", 1100),
	} {
		b.Run(name, func(b *testing.B) {
			r := &request{}
			b.ReportAllocs()
			for b.Loop() {
				r.eachReading([]byte(path), func([]byte, int) bool { return true })
			}
		})
	}
}

// What a request costs whose path and fields leave as much open as they can.
func BenchmarkReadingsByOverrides(b *testing.B) {
	long := "/" + strings.Repeat("a", 3500) + "%25252541;x"
	const fields = " HTTP/1.1\r\nHost: s\r\nX-HTTP-Method: PUT\r\nX-HTTP-Method-Override: PATCH\r\nX-Method-Override: DELETE\r\nX-Original-Url: "
	p, err := New(options(shopFunc(answering)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for turn := turning(p, "GET "+long+fields+"/\r\n\r\n"); b.Loop(); {
		turn()
	}
}
