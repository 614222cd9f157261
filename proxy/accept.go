package proxy

import "bytes"

// format picks a page for whoever asks for one by name, and weighs JSON no higher (RFC 9110, section 12.5.1): browsers do
// when they go to a page, and scripts of the shop do not.
func (a *responder) format(r *request) Format {
	if a.Format != Auto {
		return a.Format
	}
	accept := r.asked.Peek("Accept")
	if !bytes.Contains(accept, textHTML) {
		return Problem
	}
	page, program := 0, 0
	for len(accept) > 0 {
		var item []byte
		item, accept = cut(accept, ',')
		kind, params := cut(item, ';')
		switch kind = trimSpace(kind); {
		case bytes.Equal(kind, textHTML):
			page = max(page, quality(params))
		case bytes.HasPrefix(kind, application) && bytes.HasSuffix(kind, anyJSON):
			program = max(program, quality(params))
		}
	}
	if page == 0 || program > page {
		return Problem
	}
	return HTML
}

var textHTML, application, anyJSON = []byte("text/html"), []byte("application/"), []byte("json")
