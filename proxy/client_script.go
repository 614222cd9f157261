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
	"sluice/proxy/reject"
)

// scriptPath is where pages of the shop load the script from.
const scriptPath = "/.sluice/client.js"

//go:embed web/client.js
var clientSource string

// clientScript is the script as it is served.
type clientScript struct {
	plain           []byte
	packed          func() []byte // compressed at the first request for it: that takes a millisecond and a megabyte
	etag, packedTag string
}

// newClientScript fills in the transient reasons, and leaves out what only people read: comments, on lines of their
// own, and indentation.
func newClientScript() *clientScript {
	var s clientScript
	source := strings.Replace(clientSource, "TRANSIENT", strings.Join(transientReasons(), "|"), 1)
	for line := range strings.Lines(source) {
		if line = strings.TrimLeft(line, " "); line != "\n" && !strings.HasPrefix(line, "//") {
			s.plain = append(s.plain, line...)
		}
	}
	s.packed = sync.OnceValue(func() []byte { return packed(s.plain) })
	sum := sha256.Sum256(s.plain)
	s.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
	s.packedTag = `"` + hex.EncodeToString(sum[:8]) + `-gzip"`
	return &s
}

// transientReasons are those after which the script sends the order again.
func transientReasons() (names []string) {
	for _, reason := range reject.Reasons() {
		if reason.Transient() && reason != reject.ClientGone {
			names = append(names, reason.String())
		}
	}
	return names
}

func packed(plain []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("BUG: packing into memory: " + err.Error())
	}
	return out.Bytes()
}

// answerScript serves the script: from a cache for five minutes, and by its ETag after that, so that a new version of
// the gateway is in force soon.
func (p *Proxy) answerScript(r *Request) rejection {
	text, tag, encoding := p.script.plain, p.script.etag, ""
	if acceptsGzip(r.exchange.Request.Peek("Accept-Encoding")) {
		text, tag, encoding = p.script.packed(), p.script.packedTag, "gzip"
	}
	out := r.taggedResponse(tag, tag, "text/javascript; charset=utf-8") // RFC 9239
	out.Add("Cache-Control", "public, max-age=300")
	out.Add("Vary", "Accept-Encoding")
	if out.Status == 200 {
		if encoding != "" {
			out.Add("Content-Encoding", encoding)
		}
		out.Write(text)
	}
	return rejection{}
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3).
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
