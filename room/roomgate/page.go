package roomgate

import (
	_ "embed" // for the page
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"

	"sluice/proxy/roomview"
	"sluice/room"
)

const (
	typeHTML    = "text/html; charset=utf-8"
	overRefresh = 30 * time.Second // at the end: units may come back
)

//go:embed page.html
var pageHTML string

// verifyHTML recomputes a place from the record of the draw, in the browser.
//
//go:embed verify.html
var verifyHTML string

// texts are those of one language. A % stands for a value.
type texts struct {
	lang                                              string
	join, wait, called, missed, passed, over, off     string // titles
	joinButton, passButton, back, next                string
	ahead, eta, early, drawing, hold, none, lastUnits string // lines
	soon, verify                                      string
}

var languages = [...]texts{
	{lang: "zh-CN", join: "请排队等候", wait: "您正在排队", called: "轮到您了", missed: "您错过了叫号", passed: "您可以下单了",
		over: "商品已售罄或活动已结束", off: "无需排队", joinButton: "加入排队", passButton: "领取通行证", back: "返回商品页面",
		ahead: "前面大约还有 %s 人", next: "下一位就是您", eta: "预计等待约 %d 秒", early: "活动尚未开始；开始后按规则叫号", drawing: "正在等待抽签",
		hold: "叫号已暂停", none: "按目前库存，您可能买不到了", lastUnits: "剩余库存已全部被预占，可能会有释放", soon: "页面会自动刷新", verify: "核对抽签"},
	{lang: "en", join: "Please wait in line", wait: "You are waiting", called: "It is your turn",
		missed: "You were called and did not come in time", passed: "You can order now",
		over: "Everything is sold, or the sale is over", off: "There is no waiting now", joinButton: "Join the waiting room",
		passButton: "Take my pass", back: "Back to the item", ahead: "About %s people are before you",
		next: "You are next", eta: "About %d seconds to wait",
		early:   "The sale has not begun; people are called after its start",
		drawing: "The draw has not been made yet", hold: "No people are called for the moment",
		none:      "By the units that are left you will probably not get one",
		lastUnits: "All units are reserved; some may come back", soon: "This page refreshes automatically",
		verify: "Check the draw"},
}

// language is the one that Accept-Language names first, Chinese where it names none of them.
func language(accept []byte) *texts {
	text := strings.ToLower(string(accept))
	zh, en := strings.Index(text, "zh"), strings.Index(text, "en")
	if en >= 0 && (zh < 0 || en < zh) {
		return &languages[1]
	}
	return &languages[0]
}

// page is what a browser shows. It needs no script: it reloads while the client waits.
func (r *Room) page(q *roomview.Question, m *me, back string) []byte {
	t := language(q.Language)
	title, button, action := t.join, t.joinButton, "join"
	waits, refresh := false, time.Duration(0)
	switch {
	case m.Phase == room.Off:
		title, action = t.off, ""
	case m.State == hasPassed:
		title, action = t.passed, ""
	case m.Phase == room.Over:
		title, action, refresh = t.over, "", overRefresh
	case m.State == room.IsCalled && m.Phase.Passes():
		title, button, action = t.called, t.passButton, "pass"
	case m.State == room.IsMissed:
		title = t.missed
	case m.State == room.IsWaiting, m.State == room.IsCalled:
		title, action, waits = t.wait, "", true
	}
	if waits {
		refresh = max(time.Duration(m.Poll)*time.Millisecond, time.Second)
	}
	reload := ""
	if refresh > 0 {
		reload = `<meta http-equiv="refresh" content="` + strconv.Itoa(int(refresh/time.Second)) + "\">\n"
	}
	return []byte(strings.NewReplacer("{lang}", t.lang, "{title}", title, "{refresh}", reload,
		"{lines}", t.lines(m, waits), "{action}", form(r.o.Rules.Name, action, button, t.back, back)).Replace(pageHTML))
}

// form is the button of an action, or the link back where there is none to do.
func form(name, action, button, backLabel, back string) string {
	link := `<a href="` + html.EscapeString(back) + `">` + backLabel + "</a>\n"
	if action == "" {
		return link
	}
	return fmt.Sprintf("<form method=\"post\" action=\"/.sluice/room/%s/%s?back=%s\"><button>%s</button></form>\n", name,
		action, html.EscapeString(queryOf(back)), button)
}

// lines are what is known, and no number that is not.
func (t *texts) lines(m *me, waits bool) string {
	var lines []string
	if waits && m.Ahead != nil && *m.Ahead == 0 {
		lines = append(lines, t.next)
	} else if waits && m.Ahead != nil {
		lines = append(lines, fmt.Sprintf(t.ahead, strconv.FormatInt(*m.Ahead, 10)))
	}
	if waits && m.ETA != nil {
		lines = append(lines, fmt.Sprintf(t.eta, (*m.ETA+999)/1000))
	}
	if m.Chance == room.NoChance {
		lines = append(lines, t.none)
	}
	switch m.Phase {
	case room.PreQueue, room.Closed:
		lines = append(lines, t.early)
	case room.Drawing:
		lines = append(lines, t.drawing)
	case room.Hold:
		lines = append(lines, t.hold)
	case room.LastChance:
		lines = append(lines, t.lastUnits)
	}
	if m.Message != "" {
		lines = append(lines, html.EscapeString(m.Message))
	}
	if waits {
		lines = append(lines, t.soon)
	}
	if m.Score != nil {
		lines = append(lines, fmt.Sprintf(`<small><a href="/.sluice/room/%s/verify">%s</a></small>`, m.Room, t.verify))
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString("<p>" + line + "</p>\n")
	}
	return out.String()
}
