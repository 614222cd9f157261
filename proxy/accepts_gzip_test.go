package proxy

import "testing"

func TestAcceptsGzip_ReadsQualities(t *testing.T) {
	for accept, want := range map[string]bool{"": false, "gzip": true, "GZIP;q=0.1": true, "gzip;q=0": false, "br": false,
		"*": true, "*;q=0": false, "gzip;q=0, *": false, "br, gzip": true} {
		if got := acceptsGzip([]byte(accept)); got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}
