package demo

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
)

//go:embed page.html
var pageText string

// pages are the product page in both languages, rendered once.
type pages struct{ zh, en []byte }

// words are what a page says; it names them, {{.Name}}.
type words struct {
	Lang, Sale, Name, About, Buy string
	Action                       string
	Say                          sayings
}

// sayings are what a page's script may have to say.
type sayings struct {
	Bought   string         `json:"bought"`
	Rejected string         `json:"rejected"`
	Again    string         `json:"again"` // %d is in seconds
	Gate     string         `json:"gate"`
	Shop     string         `json:"shop"`
	Broken   string         `json:"broken"`
	Unsure   string         `json:"unsure"`
	Codes    map[int]string `json:"codes"`
}

func newPages(sku string) (p pages, err error) {
	action := "/api/seckill/" + url.PathEscape(sku) + "/order"
	if p.zh, err = renderPage(chinese(action)); err != nil {
		return p, err
	}
	p.en, err = renderPage(english(action))
	return p, err
}

func renderPage(w words) ([]byte, error) {
	say, err := json.Marshal(w.Say) // which escapes < and > too
	if err != nil {
		return nil, fmt.Errorf("render the product page: %w", err)
	}
	fill := []string{"{{.Say}}", string(say)}
	for name, text := range map[string]string{"Lang": w.Lang, "Sale": w.Sale, "Name": w.Name, "About": w.About,
		"Buy": w.Buy, "Action": w.Action} {
		fill = append(fill, "{{."+name+"}}", html.EscapeString(text))
	}
	return []byte(strings.NewReplacer(fill...).Replace(pageText)), nil
}

func chinese(action string) words {
	return words{
		Lang: "zh-CN", Sale: "限时秒杀", Name: "铁壶", About: "手工铸铁，一壶好水。每人限购一件。", Buy: "立即抢购", Action: action,
		Say: sayings{
			Bought: "抢到了！订单号：", Rejected: "没有成功", Again: "请 %d 秒后再试。", Gate: "大闸回答：", Shop: "店铺回答",
			Broken: "连接中断", Unsure: "不知道订单是否已生成。再点一次是安全的：每人只能买一件。",
			Codes: map[int]string{soldOut.code: "已售罄", already.code: "您已经购买过了", noUser.code: "请先刷新本页", shutting.code: "店铺正在关闭"},
		},
	}
}

func english(action string) words {
	return words{
		Lang: "en", Sale: "Flash sale", Name: "A cast-iron kettle", About: "Made by hand, boils well. One for each person.",
		Buy: "Buy now", Action: action,
		Say: sayings{
			Bought: "It is yours. Your order:", Rejected: "That did not work", Again: "Try again in %d s.",
			Gate: "answered by the gateway: ", Shop: "answered by the shop",
			Broken: "The connection broke",
			Unsure: "Whether there is an order is not known. Pressing again is safe: the shop sells one to each person.",
			Codes: map[int]string{soldOut.code: "Sold out", already.code: "You have bought this already",
				noUser.code: "Load this page again first", shutting.code: "The shop is closing"},
		},
	}
}

// serveProductPage gives the product page, and a uid to who has none.
func (s *Shop) serveProductPage(w http.ResponseWriter, r *http.Request) {
	if userOf(r) == "" {
		http.SetCookie(w, &http.Cookie{Name: uidCookie, Value: rand.Text(), Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode})
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store") // it may carry a uid
	h.Set("Vary", "Accept-Language")
	page := s.pages.en
	if prefersChinese(r.Header.Get("Accept-Language")) {
		page = s.pages.zh
	}
	_, _ = w.Write(page) // a client that has left does not read it
}

// prefersChinese looks at the first language alone: browsers name the one of their own first.
func prefersChinese(accept string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(accept)), "zh")
}
