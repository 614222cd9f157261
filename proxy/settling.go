package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// Settling says by which answers the shop tells what became of an order. What it does not tell stays held.
type Settling struct {
	PerUser   int64    // units that one order may ask for; 0 = no bound
	ConfirmOn []string // statuses like "2xx" or "201"
	ReleaseOn []string
	// ConfirmJSON, where given, is a place in the body that must hold one of Values beside a status of ConfirmOn. A
	// body that holds another value there says that there is no order.
	ConfirmJSON *JSONValue
	Key         []byte // signs what the shop is told; nil = it is not signed
}

// JSONValue is a place in a JSON body, like "data.code", and what may stand there, as JSON.
type JSONValue struct {
	Keys   []string
	Values []string
}

// shopOrder is the header by which the shop says itself what became of an order. Clients never see it.
const shopOrder = "Sluice-Order"

// fateOf reads the shop's answer. Its own word counts most; two different ones count for nothing.
func (s *Settling) fateOf(resp *fasthttp.Response) Fate {
	if words := resp.Header.PeekAll(shopOrder); len(words) > 0 {
		return said(words)
	}
	status := resp.StatusCode()
	switch {
	case listed(s.ConfirmOn, status):
		return s.confirmed(resp.Body())
	case listed(s.ReleaseOn, status):
		return Dropped
	}
	return Unsure
}

func said(words [][]byte) Fate {
	for _, w := range words[1:] {
		if !bytes.Equal(w, words[0]) {
			return Unsure
		}
	}
	switch string(words[0]) {
	case "confirmed":
		return Placed
	case "released", "sold-out":
		return Dropped
	}
	return Unsure
}

// confirmed looks into the body where the status alone does not tell.
func (s *Settling) confirmed(body []byte) Fate {
	if s.ConfirmJSON == nil {
		return Placed
	}
	parsed, err := fastjson.ParseBytes(body)
	if err != nil {
		return Unsure
	}
	v, reason := walkJSON(parsed, s.ConfirmJSON.Keys)
	if v == nil || reason != Admitted {
		return Unsure
	}
	found := string(v.MarshalTo(nil))
	for _, want := range s.ConfirmJSON.Values {
		if found == want {
			return Placed
		}
	}
	return Dropped
}

// listed reports whether list has a status, or its class.
func listed(list []string, status int) bool {
	if status < 100 || status > 999 {
		return false
	}
	text := [3]byte{'0' + byte(status/100), '0' + byte(status/10%10), '0' + byte(status%10)}
	for _, s := range list {
		if len(s) == 3 && s[0] == text[0] && (s[1:] == "xx" || s[1:] == string(text[1:])) {
			return true
		}
	}
	return false
}
