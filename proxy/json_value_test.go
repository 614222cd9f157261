package proxy

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// rational is the value of a JSON number; nil for what is none, or would take too long to compute.
func rational(text string) *big.Rat {
	if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789.eE+-") != "" {
		return nil
	}
	if _, power, found := strings.Cut(strings.ToLower(text), "e"); found {
		if n, err := strconv.Atoi(power); err != nil || n > 1000 || n < -1000 {
			return nil
		}
	}
	r, _ := new(big.Rat).SetString(text)
	return r
}

// Two numbers are the same to a JSONValue exactly when their values are.
func FuzzJSONValue_NumbersCompareExactly(f *testing.F) {
	for _, pair := range [][2]string{
		{"200", "200.0"}, {"200", "2e2"}, {"200", "0.02E+4"}, {"0", "-0.0e9"}, {"9007199254740993", "9007199254740992"},
		{"1", "10"}, {"0.1", "1e-1"}, {"-5", "5"}, {"0.0001", "100e-6"}, {"1e400", "1e401"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := rational(a), rational(b)
		if x == nil || y == nil {
			return
		}
		same := bytes.Equal(appendJSONNumber(nil, []byte(a)), appendJSONNumber(nil, []byte(b)))
		if same != (x.Cmp(y) == 0) {
			t.Errorf("%s and %s: the same is %v", a, b, same)
		}
	})
}

// Whatever the body is, it is looked into without a panic.
func FuzzJSONValue_AnyBodyIsCompared(f *testing.F) {
	for _, body := range []string{
		`{"code":200}`, `{"code":"\ud83d"}`, `{"code":1e99999999999}`, `{"code":-}`, `{"code":`,
	} {
		f.Add([]byte(body))
	}
	j := &JSONValue{Keys: []string{"code"}, Values: []string{"200", `"ok"`, "true"}}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := j.compare(body); got != nothing && !json.Valid(body) {
			t.Errorf("%q is no JSON, and says %v", body, got)
		}
	})
}

func TestSoldOut_LinesThatDifferSayNothing(t *testing.T) {
	on := &SoldOutAnswer{Header: "X-Stock", Value: "0"}
	for _, c := range []struct {
		lines []string
		want  bool
	}{
		{nil, false}, {[]string{"0"}, true}, {[]string{"0", "0"}, true}, {[]string{"0", "5"}, false},
		{[]string{"5"}, false},
	} {
		var resp fasthttp.Response
		for _, l := range c.lines {
			resp.Header.Add("X-Stock", l)
		}
		if got := on.Matches(&resp); got != c.want {
			t.Errorf("%q: %v", c.lines, got)
		}
	}
}
