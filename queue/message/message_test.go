package message

import (
	"reflect"
	"testing"
)

func TestMessages_AreReadAsTheyWereWritten(t *testing.T) {
	for _, r := range []Request{
		{Method: "POST", Target: "/order?sku=1"},
		{Method: "POST", Target: "/order", HasBody: true, Body: "\n\nHost: x\x00\xff",
			Fields: []Field{{"Host", ""}, {"Cookie", "a=b:c"}, {"X-Empty", ""}}},
	} {
		got, err := DecodeRequest(r.Text())
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v; want %+v", got, err, r)
		}
	}
	for _, a := range []Answer{{State: Expired}, {Status: 201, Fields: []Field{{"Content-Type", "text/html"}},
		Body: "a\n"},
		{Status: 200, TooLong: true}} {
		got, err := DecodeAnswer(a.Text())
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v, %v; want %+v", got, err, a)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add((&Request{Method: "POST", Target: "/", Fields: []Field{{"Host", "x"}}, Body: "b"}).Text())
	f.Add((&Answer{Status: 200, Body: "b"}).Text())
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := DecodeRequest(s); err == nil {
			if again, err := DecodeRequest(r.Text()); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("%+v, %v; want %+v", again, err, r)
			}
		}
		if a, err := DecodeAnswer(s); err == nil {
			if again, err := DecodeAnswer(a.Text()); err != nil || !reflect.DeepEqual(again, a) {
				t.Errorf("%+v, %v; want %+v", again, err, a)
			}
		}
	})
}
