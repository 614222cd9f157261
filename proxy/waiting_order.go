package proxy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// WaitingOrder is what is known of an order that waits until it is delivered. It does not decide who may see what: its
// callers leave out what a client must not see.
type WaitingOrder struct {
	Serial string
	SKU    string
	User   string // whose it is; not shown
	// "queued" "delivering" "unknown" "stuck" "held" "sold" "released" "refunded" "expired" "cancelled" "none"
	State    string
	Ahead    int64 // orders before it, where it is queued
	ETA      time.Duration
	Deadline int64      // Unix ms: of the reservation, while it is undecided
	Answer   KeptAnswer // its Status is 0 where there is none, or it must not be seen
}

// Pending reports whether the state is going to change by itself.
func (w *WaitingOrder) Pending() bool {
	return slices.Contains([]string{"queued", "delivering", "unknown", "held"}, w.State)
}

// When a client does well to ask again.
const (
	askSoon  = time.Second
	askLater = 10 * time.Second
)

// Again is when the client does well to ask again.
func (w *WaitingOrder) Again() time.Duration {
	return min(max(w.ETA/4, askSoon), askLater).Round(time.Second)
}

// AppendJSON appends w as one line of JSON.
func (w *WaitingOrder) AppendJSON(dst []byte) []byte {
	view := struct {
		Serial   string          `json:"serial"`
		SKU      string          `json:"sku,omitempty"`
		State    string          `json:"state"`
		Ahead    *int64          `json:"ahead,omitempty"`
		ETA      *int64          `json:"eta_ms,omitempty"`
		Again    int64           `json:"again_ms,omitempty"`
		Deadline string          `json:"deadline,omitempty"`
		Answer   *keptAnswerView `json:"answer,omitempty"`
	}{Serial: w.Serial, SKU: w.SKU, State: w.State}
	if w.State == "queued" {
		view.Ahead = &w.Ahead
		if eta := w.ETA.Milliseconds(); eta > 0 {
			view.ETA = &eta
		}
	}
	if w.Pending() {
		view.Again = w.Again().Milliseconds()
		if w.Deadline > 0 {
			view.Deadline = time.UnixMilli(w.Deadline).UTC().Format(time.RFC3339Nano)
		}
	}
	if w.Answer.Status > 0 {
		view.Answer = viewOfAnswer(&w.Answer)
	}
	return append(dst, jsonLine(view)...)
}

// jsonLine is the state of an order as one line of JSON.
func jsonLine(state any) []byte {
	text, err := json.Marshal(state)
	if err != nil {
		panic("BUG: an order's state is no JSON: " + err.Error())
	}
	return append(text, '\n')
}

// keptAnswerView is the upstream's answer in JSON.
type keptAnswerView struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Base64  bool              `json:"base64,omitempty"`
	TooLong bool              `json:"too_long,omitempty"`
}

func viewOfAnswer(a *KeptAnswer) *keptAnswerView {
	v := &keptAnswerView{Status: a.Status, Body: a.Body, TooLong: a.TooLong}
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

// writeKeptAnswer writes the upstream's answer as it came; out has begun with its status.
func writeKeptAnswer(out *fasthttp.Response, a *KeptAnswer) {
	for _, f := range a.Fields {
		out.Header.Add(f.Name, f.Value)
	}
	out.AppendBodyString(a.Body)
}

// orderWording is what a page says in one language.
type orderWording struct {
	language string
	states   map[string][2]string // title and what it means
	ahead    string               // before the number of orders
	wait     string               // with a number of seconds
	serial   string
}

func englishOrder() *orderWording {
	return &orderWording{language: "en", ahead: "Orders before yours: ", wait: "About %d seconds to wait",
		serial: "Order: ",
		states: map[string][2]string{
			"queued": {"Your unit is held for you",
				"Your order is waiting to be placed. This page refreshes automatically."},
			"delivering": {"Your order is being placed", "This page refreshes automatically."},
			"unknown":    {"Your order is being checked", "Your unit stays held for you. This page refreshes automatically."},
			"held":       {"Your unit is held for you", "Your order is being checked. This page refreshes automatically."},
			"stuck":      {"Your order is being checked", "Your unit stays held for you. The shop will look at your order."},
			"sold":       {"Your order is placed", "The shop has confirmed it."},
			"released":   {"Your order was not placed", "You were not charged for it."},
			"refunded":   {"Your order is cancelled", "The shop has cancelled it after it was placed."},
			"expired":    {"Your order was not placed", "The shop could not take it in time. You were not charged for it."},
			"cancelled":  {"Your order is cancelled", "You were not charged for it."},
			"none":       {"No such order", "No order is known by this address."},
		}}
}

func chineseOrder() *orderWording {
	return &orderWording{language: "zh-CN", ahead: "您前面的订单数：", wait: "预计等待约 %d 秒", serial: "订单号：",
		states: map[string][2]string{
			"queued":     {"已为您保留商品", "您的订单正在排队提交，本页会自动更新。"},
			"delivering": {"正在提交您的订单", "本页会自动更新。"},
			"unknown":    {"正在核实您的订单", "期间商品为您保留，本页会自动更新。"},
			"held":       {"已为您保留商品", "正在核实您的订单，本页会自动更新。"},
			"stuck":      {"正在核实您的订单", "商品为您保留，商城会处理您的订单。"},
			"sold":       {"下单成功", "商城已确认您的订单。"},
			"released":   {"下单未成功", "您没有被扣款。"},
			"refunded":   {"订单已取消", "下单之后，商城取消了该订单。"},
			"expired":    {"下单未成功", "商城未能及时处理，您没有被扣款。"},
			"cancelled":  {"订单已取消", "您没有被扣款。"},
			"none":       {"没有这个订单", "这个地址没有对应的订单。"},
		}}
}

// orderStyle is that of the pages of rejections.
const orderStyle = "<style>:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1f;--dim:#55565c}" +
	"@media (prefers-color-scheme:dark){:root{--bg:#141416;--fg:#f0f0f3;--dim:#b5b6bd}}" +
	"body{background:var(--bg);color:var(--fg);font:17px/1.6 system-ui,sans-serif;display:grid;place-content:center;" +
	"min-height:90vh;margin:0 1.5rem;text-align:center}main{max-width:34rem}h1{font-size:1.7rem;line-height:1.3}" +
	"small{color:var(--dim);overflow-wrap:anywhere}</style>\n"

// AppendPage appends a page about w; no text of a client's is in it that is not escaped. Its language is Chinese where
// Accept-Language names that before English, or where it names neither and Chinese is the fallback.
func (w *WaitingOrder) AppendPage(dst []byte, acceptLanguage string, fallbackChinese bool) []byte {
	zh, en := strings.Index(acceptLanguage, "zh"), strings.Index(acceptLanguage, "en")
	says := englishOrder()
	if zh >= 0 && (en < 0 || zh < en) || zh < 0 && en < 0 && fallbackChinese {
		says = chineseOrder()
	}
	said, ok := says.states[w.State]
	if !ok {
		said = says.states["unknown"]
	}
	page := "<!doctype html>\n<html lang=\"" + says.language + "\">\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n" +
		"<meta name=\"robots\" content=\"noindex\">\n<title>" + said[0] + "</title>\n" + orderStyle +
		"<main><h1>" + said[0] + "</h1>\n<p>" + said[1] + "</p>\n"
	if w.State == "queued" {
		page += "<p>" + says.ahead + strconv.FormatInt(w.Ahead, 10) + "</p>\n"
		if w.ETA > 0 {
			page += "<p>" + fmt.Sprintf(says.wait, int64(w.ETA.Seconds())+1) + "</p>\n"
		}
	}
	return append(dst, page+"<p><small>"+says.serial+html.EscapeString(w.Serial)+"</small></p></main>\n</html>\n"...)
}
