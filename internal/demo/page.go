package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"

	"sluice/internal/load"
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
			Codes: map[int]string{load.NoStock.Code: "已售罄", load.Already.Code: "您已经购买过了",
				load.NoUser.Code: "请先刷新本页", load.Closing.Code: "店铺正在关闭"},
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
			Codes: map[int]string{load.NoStock.Code: "Sold out", load.Already.Code: "You have bought this already",
				load.NoUser.Code: "Load this page again first", load.Closing.Code: "The shop is closing"},
		},
	}
}
