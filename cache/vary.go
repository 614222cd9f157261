package cache

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy"
)

// mostVary is by how many fields an answer may vary and be kept.
const mostVary = 8

// lookUpEntry finds what is kept for page, and the key under which a fetch of it is known.
func (c *Cache) lookUpEntry(page *proxy.Page) (key []byte, e *entry) {
	e = c.get(page.Key)
	if e == nil || e.vary == nil {
		return page.Key, e
	}
	key = e.variant(page)
	return key, c.get(key)
}

// store keeps a under the page's key, or under that of its variant (RFC 9111, section 4.1).
func (c *Cache) store(page *proxy.Page, a *answer) {
	if len(a.vary) == 0 {
		c.storeEntry(page.Key, &entry{answer: a})
		return
	}
	e := c.get(page.Key)
	if e == nil || !slices.Equal(e.vary, a.vary) {
		e = &entry{vary: a.vary, mark: c.marks.Add(1)}
		c.storeEntry(page.Key, e)
	}
	c.storeEntry(e.variant(page), &entry{answer: a})
}

func (c *Cache) get(key []byte) *entry {
	e, ok := c.kept.GetIfPresent(maphash.Bytes(c.seed, key))
	if !ok || e.key != string(key) {
		return nil
	}
	return e
}

func (c *Cache) storeEntry(key []byte, e *entry) {
	e.key = string(key)
	c.kept.Set(maphash.Bytes(c.seed, key), e)
}

// variant is the key of what page selects.
func (e *entry) variant(page *proxy.Page) []byte {
	key := append(append(make([]byte, 0, len(page.Key)+64), page.Key...), '\n')
	key = strconv.AppendUint(key, e.mark, 10)
	for _, name := range e.vary {
		key = appendField(append(key, '\n'), page, name)
	}
	return key
}

// appendField appends the lines of a field as one value (RFC 9110, section 5.2), without the white space that means
// nothing. A field that is not there differs from an empty one. The lines are read as the shop will get them: CGI takes
// another spelling for the same name.
func appendField(dst []byte, page *proxy.Page, name string) []byte {
	there := false
	for key, value := range page.Request.Fields {
		if !octets.EqualFieldName(key, name) {
			continue
		}
		there = true
		if !bytes.EqualFold(key, []byte(name)) {
			dst = append(append(dst, '\r'), key...) // no value has this byte: it is no other field's key
		}
		for item := range bytes.SplitSeq(value, []byte(",")) {
			dst = append(append(dst, ','), bytes.TrimSpace(item)...)
		}
	}
	if !there {
		return append(dst, '-')
	}
	return dst
}

// varies are the fields of the request that chose this answer. ok is false when no other answer can.
func varies(h *fasthttp.ResponseHeader) (names []string, ok bool) {
	for _, line := range h.PeekAll("Vary") {
		for name := range bytes.SplitSeq(line, []byte(",")) {
			switch name = bytes.ToLower(bytes.TrimSpace(name)); {
			case string(name) == "*", string(name) == "x-forwarded-for": // which the gate writes: the request does not have it
				return nil, false
			case len(name) > 0 && !slices.Contains(names, string(name)):
				names = append(names, string(name))
			}
		}
	}
	// A shop that compresses and does not say so would have one client's coding given to all.
	if len(h.Peek("Content-Encoding")) > 0 && !slices.Contains(names, "accept-encoding") {
		names = append(names, "accept-encoding")
	}
	slices.Sort(names)
	return names, len(names) <= mostVary
}

// selects reports whether page would be given this answer too.
func (a *answer) selects(page *proxy.Page) bool {
	for i, name := range a.vary {
		if string(appendField(nil, page, name)) != a.values[i] {
			return false
		}
	}
	return true
}
