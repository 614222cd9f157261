package proxy

import (
	"sluice/proxy/clientscript"
	"sluice/proxy/reject"
)

// scriptPath is where pages of the shop load the script from.
const scriptPath = "/.sluice/client.js"

// transientReasons are those after which the script sends the order again.
func transientReasons() (names []string) {
	for _, reason := range reject.Reasons() {
		if reason.Transient() && reason != reject.ClientGone {
			names = append(names, reason.String())
		}
	}
	return names
}

func newClientScript() *clientscript.Script { return clientscript.New(transientReasons()) }

// answerScript serves the script: from a cache for five minutes, and by its ETag after that, so that a new version of
// the gateway is in force soon.
func (p *Proxy) answerScript(r *Request) rejection {
	text, tag, encoding := p.script.Plain, p.script.ETag, ""
	if clientscript.AcceptsGzip(r.exchange.Request.Peek("Accept-Encoding")) {
		text, tag, encoding = p.script.Gzip(), p.script.GzipETag, "gzip"
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
