package proxy

import (
	"fmt"
	"reflect"
	"testing"
)

func TestQueuedText_AreReadAsTheyWereWritten(t *testing.T) {
	for _, r := range []QueuedRequest{
		{Method: "POST", Target: "/order?sku=1"},
		{Method: "POST", Target: "/order", HasBody: true, Body: "\n\nHost: x\x00\xff",
			Fields: []KeptField{{"Host", ""}, {"Cookie", "a=b:c"}, {"X-Empty", ""}}},
	} {
		got, err := DecodeQueuedRequest(r.Text())
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
	}
	for _, a := range []KeptAnswer{{State: OrderExpired}, {Status: 201, Fields: []KeptField{{"Content-Type", "text/html"}},
		Body: "a\n"},
		{Status: 200, TooLong: true}} {
		got, err := DecodeKeptAnswer(a.Text())
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v, %v; want %+v", got, err, a)
		}
	}
}

func FuzzQueuedText(f *testing.F) {
	f.Add((&QueuedRequest{Method: "POST", Target: "/", Fields: []KeptField{{"Host", "x"}}, Body: "b"}).Text())
	f.Add((&KeptAnswer{Status: 200, Body: "b"}).Text())
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := DecodeQueuedRequest(s); err == nil {
			if again, err := DecodeQueuedRequest(r.Text()); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("%+v, %v; want %+v", again, err, r)
			}
		}
		if a, err := DecodeKeptAnswer(s); err == nil {
			if again, err := DecodeKeptAnswer(a.Text()); err != nil || !reflect.DeepEqual(again, a) {
				t.Errorf("%+v, %v; want %+v", again, err, a)
			}
		}
	})
}

func TestQueuedFields_KeepWhatDescribesTheBody(t *testing.T) {
	lines := "Host: shop\r\nContent-Length: 3\r\ncontent-digest: sha-256=:x:\r\nContent-MD5: y\r\n" +
		"Content-Type: text/plain\r\nContents: 1\r\nX-Forwarded-Port: 443\r\nX-Request-Id: r\r\n\r\n"
	got := fmt.Sprint(waitingFields([]byte(lines), "X-Request-ID"))
	const want = "[{Host shop} {content-digest sha-256=:x:} {Content-MD5 y} {Content-Type text/plain} {X-Request-Id r}]"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
