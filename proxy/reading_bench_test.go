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
