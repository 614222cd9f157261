package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/hex"
	"strings"
	"sync"

	"sluice/internal/octets"
)

//go:embed client.js
var scriptSource string

// clientScript is the script that pages of the shop load, as it is served: it sends an order again after a transient
// rejection, and follows the sale's state. It is safe for concurrent use.
type clientScript struct {
	Plain          []byte
	Gzip           func() []byte // compressed at the first call: that takes a millisecond and a megabyte
	ETag, GzipETag string        // quoted (RFC 9110, section 8.8.3)
}

// newClientScript fills in the reasons after which the script sends an order again, and leaves out what only people
// read: comments, on lines of their own, and indentation.
func newClientScript(transient []string) *clientScript {
	var s clientScript
	for line := range strings.Lines(strings.Replace(scriptSource, "TRANSIENT", strings.Join(transient, "|"), 1)) {
		if line = strings.TrimLeft(line, " "); line != "\n" && !strings.HasPrefix(line, "//") {
			s.Plain = append(s.Plain, line...)
		}
	}
	s.Gzip = sync.OnceValue(func() []byte { return gzipped(s.Plain) })
	sum := sha256.Sum256(s.Plain)
	s.ETag = `"` + hex.EncodeToString(sum[:8]) + `"`
	s.GzipETag = `"` + hex.EncodeToString(sum[:8]) + `-gzip"`
	return &s
}

func gzipped(plain []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("BUG: compressing into memory: " + err.Error())
	}
	return out.Bytes()
}

// acceptsGzip reads Accept-Encoding: whether the client takes gzip (RFC 9110, section 12.5.3).
func acceptsGzip(accept []byte) bool {
	yes := false
	for len(accept) > 0 {
		var item []byte
		item, accept = octets.Cut(accept, ',')
		name, params := octets.Cut(item, ';')
		switch name = octets.Trim(name); {
		case octets.EqualFold(name, "gzip"):
			return octets.Quality(params) > 0
		case string(name) == "*":
			yes = octets.Quality(params) > 0
		}
	}
	return yes
}
