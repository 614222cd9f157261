package proxy

import "github.com/valyala/fasthttp"

// stamps are the fields of a refusal that do not differ from one request to the next, made once: putting them together
// each time was dearer than all else that a refusal needs.
type stamps struct {
	heads   [][Envelope + 1]fasthttp.ResponseHeader // by tongue; they are copied, and must not be changed
	reason  []byte                                  // the name of the field, as it is sent; nil = none
	reasons [numReasons][]byte                      // its values
}

// Names of fields as they are sent.
var (
	retryAfterField = []byte("Retry-After")
	originField     = []byte("Access-Control-Allow-Origin")
)

func (a *responder) cut() stamps {
	s := stamps{heads: make([][Envelope + 1]fasthttp.ResponseHeader, len(a.tongues))}
	for lang := range s.heads {
		for format := range s.heads[lang] {
			h := &s.heads[lang][format]
			h.SetNoDefaultContentType(true)
			h.SetContentType(contentTypes[format])
			if Format(format) != Envelope {
				h.Set("Content-Language", a.tongues[lang].tag)
			}
			h.Set("Cache-Control", "no-store")
			h.Set("Vary", "Accept, Accept-Language, Origin")
		}
	}
	s.reason = asSent(a.ReasonHeader)
	for reason := range s.reasons {
		s.reasons[reason] = []byte(Reason(reason).String())
	}
	return s
}

// asSent is the name of a field in the case in which the HTTP library sends it; nil for "".
func asSent(name string) []byte { return fasthttp.AppendNormalizedHeaderKey(nil, name) }
