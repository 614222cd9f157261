package proxy

import (
	"strings"
	"testing"
	"time"
)

func TestWaitingOrder_InJSON(t *testing.T) {
	for want, o := range map[string]WaitingOrder{
		`{"serial":"k","sku":"1","state":"queued","ahead":0,"again_ms":1000}`: {Serial: "k", SKU: "1", State: "queued"},
		`{"serial":"k","sku":"1","state":"queued","ahead":40,"eta_ms":8000,"again_ms":2000}`: {Serial: "k", SKU: "1",
			State: "queued", Ahead: 40, ETA: 8 * time.Second},
		`{"serial":"k","sku":"1","state":"delivering","again_ms":1000,"deadline":"1970-01-01T00:00:01Z"}`: {Serial: "k",
			SKU: "1", State: "delivering", Deadline: 1000},
		`{"serial":"k","sku":"1","state":"sold","answer":{"status":201,"headers":{"Location":"/x"},"body":"ok"}}`: {
			Serial: "k", SKU: "1", State: "sold", Answer: KeptAnswer{Status: 201, Body: "ok",
				Fields: []KeptField{{Name: "Location", Value: "/x"}}}},
		`{"serial":"k","sku":"1","state":"sold","answer":{"status":200,"body":"/w==","base64":true}}`: {Serial: "k",
			SKU: "1", State: "sold", Answer: KeptAnswer{Status: 200, Body: "\xff"}},
	} {
		if got := string(o.AppendJSON(nil)); got != want+"\n" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWaitingOrder_PageIsEscapedAndInTheClientsLanguage(t *testing.T) {
	o := WaitingOrder{Serial: "<script>", SKU: "1", State: "queued", Ahead: 3}
	for accept, want := range map[string]string{
		"en-GB,en": "Your unit is held for you", "zh-CN,zh;q=0.9,en;q=0.8": "已为您保留商品",
		"fr": "已为您保留商品"} {
		page := string(o.AppendPage(nil, accept, true))
		if !strings.Contains(page, want) || strings.Contains(page, "<script>") || !strings.Contains(page, "&lt;script&gt;") {
			t.Errorf("%s: %s", accept, page)
		}
	}
	for state := range englishOrder().states {
		if _, ok := chineseOrder().states[state]; !ok {
			t.Errorf("%s has no Chinese words", state)
		}
	}
}
