// Package orderview renders the state of an order that waits until it is delivered: JSON for programs, a page that goes
// on by itself for browsers, and the upstream's own answer once there is one.
//
// It promises that a page has no text of a client's in it that is not escaped.
//
// It does not decide who may see what: its callers leave out what a client must not see.
package orderview

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"sluice/queue/message"
)

// Order is what is known of one order.
type Order struct {
	Serial   string
	SKU      string
	User     string // whose it is; not shown
	State    string // "queued" "delivering" "unknown" "stuck" "held" "confirmed" "released" "expired" "cancelled" "none"
	Ahead    int64  // orders before it, where it is queued
	ETA      time.Duration
	Deadline int64          // Unix ms: of the reservation, while it is undecided
	Answer   message.Answer // its Status is 0 where there is none, or it must not be seen
}

// Pending reports whether the state is going to change by itself.
func (o *Order) Pending() bool {
	switch o.State {
	case "queued", "delivering", "unknown", "held":
		return true
	}
	return false
}

// When a client does well to ask again.
const (
	askSoon  = time.Second
	askLater = 10 * time.Second
)

// Again is when the client does well to ask again.
func (o *Order) Again() time.Duration {
	return min(max(o.ETA/4, askSoon), askLater).Round(time.Second)
}

// AppendJSON appends o as one line of JSON.
func (o *Order) AppendJSON(dst []byte) []byte {
	view := struct {
		Serial   string      `json:"serial"`
		SKU      string      `json:"sku,omitempty"`
		State    string      `json:"state"`
		Ahead    *int64      `json:"ahead,omitempty"`
		ETA      *int64      `json:"eta_ms,omitempty"`
		Again    int64       `json:"again_ms,omitempty"`
		Deadline string      `json:"deadline,omitempty"`
		Answer   *answerView `json:"answer,omitempty"`
	}{Serial: o.Serial, SKU: o.SKU, State: o.State}
	if o.State == "queued" {
		view.Ahead = &o.Ahead
		if eta := o.ETA.Milliseconds(); eta > 0 {
			view.ETA = &eta
		}
	}
	if o.Pending() {
		view.Again = o.Again().Milliseconds()
		if o.Deadline > 0 {
			view.Deadline = time.UnixMilli(o.Deadline).UTC().Format(time.RFC3339Nano)
		}
	}
	if o.Answer.Status > 0 {
		view.Answer = viewOf(&o.Answer)
	}
	text, err := json.Marshal(view)
	if err != nil {
		panic("BUG: an order's state is no JSON: " + err.Error())
	}
	return append(append(dst, text...), '\n')
}

// answerView is the upstream's answer in JSON.
type answerView struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Base64  bool              `json:"base64,omitempty"`
	TooLong bool              `json:"too_long,omitempty"`
}

func viewOf(a *message.Answer) *answerView {
	v := &answerView{Status: a.Status, Body: a.Body, TooLong: a.TooLong}
	for _, f := range a.Fields {
		if v.Headers == nil {
			v.Headers = make(map[string]string)
		}
		v.Headers[f.Name] = f.Value
	}
	if !utf8.ValidString(a.Body) {
		v.Body, v.Base64 = base64.StdEncoding.EncodeToString([]byte(a.Body)), true
	}
	return v
}

// WriteAnswer writes the upstream's answer as it came; out has begun with its status.
func WriteAnswer(out *fasthttp.Response, a *message.Answer) {
	for _, f := range a.Fields {
		out.Header.Add(f.Name, f.Value)
	}
	out.AppendBodyString(a.Body)
}

// wording is what a page says in one language.
type wording struct {
	language string
	states   map[string][2]string // title and what it means
	ahead    string               // before the number of orders
	wait     string               // with a number of seconds
	serial   string
}

func english() *wording {
	return &wording{language: "en", ahead: "Orders before yours: ", wait: "About %d seconds to wait", serial: "Order: ",
		states: map[string][2]string{
			"queued":     {"Your unit is reserved", "Your order is waiting to be placed. This page refreshes automatically."},
			"delivering": {"Your order is being placed", "This page refreshes automatically."},
			"unknown":    {"Your order is being checked", "Your unit stays reserved. This page refreshes automatically."},
			"held":       {"Your unit is reserved", "Your order is being checked. This page refreshes automatically."},
			"stuck":      {"Your order is being checked", "Your unit stays reserved. The shop will look at your order."},
			"confirmed":  {"Your order is placed", "The shop has confirmed it."},
			"released":   {"Your order was not placed", "You were not charged for it."},
			"expired":    {"Your order was not placed", "The shop could not take it in time. You were not charged for it."},
			"cancelled":  {"Your order is cancelled", "You were not charged for it."},
			"none":       {"No such order", "No order is known by this address."},
		}}
}

func chinese() *wording {
	return &wording{language: "zh-CN", ahead: "您前面的订单数：", wait: "预计等待约 %d 秒", serial: "订单号：",
		states: map[string][2]string{
			"queued":     {"已为您保留商品", "您的订单正在排队提交，本页会自动更新。"},
			"delivering": {"正在提交您的订单", "本页会自动更新。"},
			"unknown":    {"正在核实您的订单", "期间商品为您保留，本页会自动更新。"},
			"held":       {"已为您保留商品", "正在核实您的订单，本页会自动更新。"},
			"stuck":      {"正在核实您的订单", "商品为您保留，商城会处理您的订单。"},
			"confirmed":  {"下单成功", "商城已确认您的订单。"},
			"released":   {"下单未成功", "您没有被扣款。"},
			"expired":    {"下单未成功", "商城未能及时处理，您没有被扣款。"},
			"cancelled":  {"订单已取消", "您没有被扣款。"},
			"none":       {"没有这个订单", "这个地址没有对应的订单。"},
		}}
}

// style is that of the pages of rejections.
const style = "<style>:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1f;--dim:#55565c}" +
	"@media (prefers-color-scheme:dark){:root{--bg:#141416;--fg:#f0f0f3;--dim:#b5b6bd}}" +
	"body{background:var(--bg);color:var(--fg);font:17px/1.6 system-ui,sans-serif;display:grid;place-content:center;" +
	"min-height:90vh;margin:0 1.5rem;text-align:center}main{max-width:34rem}h1{font-size:1.7rem;line-height:1.3}" +
	"small{color:var(--dim);overflow-wrap:anywhere}</style>\n"

// AppendPage appends a page about o. Its language is Chinese where Accept-Language names that before English, or where
// it names neither and Chinese is the fallback.
func (o *Order) AppendPage(dst []byte, acceptLanguage string, fallbackChinese bool) []byte {
	zh, en := strings.Index(acceptLanguage, "zh"), strings.Index(acceptLanguage, "en")
	w := english()
	if zh >= 0 && (en < 0 || zh < en) || zh < 0 && en < 0 && fallbackChinese {
		w = chinese()
	}
	said, ok := w.states[o.State]
	if !ok {
		said = w.states["unknown"]
	}
	page := "<!doctype html>\n<html lang=\"" + w.language + "\">\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n" +
		"<meta name=\"robots\" content=\"noindex\">\n<title>" + said[0] + "</title>\n" + style +
		"<main><h1>" + said[0] + "</h1>\n<p>" + said[1] + "</p>\n"
	if o.State == "queued" {
		page += "<p>" + w.ahead + strconv.FormatInt(o.Ahead, 10) + "</p>\n"
		if o.ETA > 0 {
			page += "<p>" + fmt.Sprintf(w.wait, int64(o.ETA.Seconds())+1) + "</p>\n"
		}
	}
	return append(dst, page+"<p><small>"+w.serial+html.EscapeString(o.Serial)+"</small></p></main>\n</html>\n"...)
}
