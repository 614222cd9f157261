package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// clientPath is where pages of the shop load the script from.
const clientPath = "/.sluice/client.js"

//go:embed web/client.js
var clientSource string

// clientScript is the script as it is served, which is small enough to be made anew for each configuration.
type clientScript struct {
	plain           []byte
	packed          func() []byte // made when somebody asks for it: packing takes a millisecond, and a megabyte meanwhile
	etag, packedTag string
}

// newClientScript leaves out what only people read: comments, on lines of their own, and indentation.
func newClientScript() *clientScript {
	var s clientScript
	for line := range strings.Lines(clientSource) {
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

func asksClient(target []byte) bool {
	path, _ := cut(target, '?')
	return string(path) == clientPath
}

// answerClient serves the script: from a cache for five minutes, and by its ETag after that, so that a new version of the
// gate is obeyed soon.
func (p *Proxy) answerClient(r *request) (reason Reason, wait time.Duration) {
	text, tag, encoding := p.script.plain, p.script.etag, ""
	if acceptsGzip(r.asked.Peek("Accept-Encoding")) {
		text, tag, encoding = p.script.packed(), p.script.packedTag, "gzip"
	}
	out := r.answerNew(tag, tag, "text/javascript; charset=utf-8") // RFC 9239
	out.add("Cache-Control", "public, max-age=300")
	out.add("Vary", "Accept-Encoding")
	if out.status == 200 {
		if encoding != "" {
			out.add("Content-Encoding", encoding)
		}
		out.sayBytes(text)
	}
	return Admitted, 0
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3).
func acceptsGzip(accept []byte) bool {
	yes := false
	for len(accept) > 0 {
		var item []byte
		item, accept = cut(accept, ',')
		name, params := cut(item, ';')
		switch name = trimSpace(name); {
		case equalFold(name, "gzip"):
			return quality(params) > 0
		case string(name) == "*":
			yes = quality(params) > 0
		}
	}
	return yes
}
