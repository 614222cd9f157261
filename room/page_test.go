package room

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/proxy"
	"sluice/proxy/reject"
)

func TestPage_NeedsNoScriptAndLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	ask := func(post bool, action, query, language string) proxy.RoomAnswer {
		return s.Answer(&proxy.RoomQuestion{Action: []byte(action), Post: post, User: []byte("u" + query), Page: true,
			Language: []byte(language), Query: []byte(query), Time: time.Now().UnixMilli(), Client: &there{}})
	}
	a := ask(false, "me", "back=/item?id=1", "en")
	for _, want := range []string{`<html lang="en">`, `action="/.sluice/room/r/join?back=/item?id=1"`} {
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("%s is missing in\n%s", want, a.Body)
		}
	}
	if a := ask(false, "me", "", "zh-CN,en;q=0.5"); !strings.Contains(string(a.Body), "请排队等候") ||
		strings.Contains(string(a.Body), "<script") {
		t.Errorf("%s", a.Body)
	}
	for query, want := range map[string]string{"back=//evil": "/", "back=https://evil": "/", "back=/a%22b": "/a%22b",
		"back=/a\"b": "/", "x=1&back=/ok": "/ok", "": "/",
		"back=%2Fitem%3Fid%3D1": "/item?id=1", "back=%2Fa%3Fx%26y": "%2Fa%3Fx%26y", "back=%2F%2Fevil": "/",
		"back=%2f%5Cevil": "/", "back=%2Fa%0d": "/", "back=%2Fa%2": "/"} {
		if a := ask(true, "join", query, "en"); a.Status != 303 || a.Location != "/.sluice/room/r/me?back="+want {
			t.Errorf("%q: %d %q", query, a.Status, a.Location)
		}
	}
	s.set(0, 0)
	s.inPhase(t, Over)
	if a := ask(false, "me", "", "en"); !strings.Contains(string(a.Body), `content="30"`) {
		t.Errorf("the end does not reload, though units may come back:\n%s", a.Body)
	}
}

// One who is called reads how long the turn lasts, and the page renews itself, without a script, too.
func TestPage_SaysHowLongATurnLasts(t *testing.T) {
	pages, err := builtInPages()
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{}
	r.o.Pages = pages
	r.o.Rules.ClaimWithin, r.o.Stock = 90*time.Second, func() *KnownStock { return nil }
	one := int64(1)
	for _, c := range []struct {
		m      me
		en, zh string
	}{
		{me{State: IsWaiting, Ahead: &one}, "<p>1 person is before you", "前面还有 1 人"},
		{me{State: IsWaiting}, "When it is your turn you have 90 seconds", "请在 90 秒内领取"},
		{me{State: IsWaiting}, `<small><a href="/">Back to the item</a></small>`, `<small><a href="/">返回商品页面`},
		{me{State: hasPassed}, "Order within 90 seconds of taking your pass", "请在领取通行证后 90 秒内下单"},
	} {
		c.m.Phase = Open
		for language, want := range map[string]string{"en": c.en, "zh-CN": c.zh} {
			page := string(r.page(&proxy.RoomQuestion{Language: []byte(language)}, &c.m, "/"))
			if !strings.Contains(page, want) {
				t.Errorf("%q is missing in\n%s", want, page)
			}
		}
	}
	m := me{Room: "r", ServerTime: 1000, Phase: Open, State: IsCalled, ClaimUntil: 81_500}
	for language, want := range map[string]string{
		"en": "You have 81 seconds to take your pass.", "zh-CN": "请在 81 秒内领取通行证。"} {
		page := string(r.page(&proxy.RoomQuestion{Language: []byte(language)}, &m, "/"))
		if !strings.Contains(page, want) || !strings.Contains(page, `http-equiv="refresh" content="5"`) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
}

// A page says what to do next: one who has not joined is told so, and gets a button only where joining is possible.
func TestPage_SaysWhereOneStandsAndWhenTheSaleStarts(t *testing.T) {
	pages, err := builtInPages()
	if err != nil {
		t.Fatal(err)
	}
	r, long := &Room{}, int64(10*60_000)
	r.o.Pages = pages
	for _, c := range []struct {
		m      me
		en, zh string
		button bool
	}{
		{me{State: hasNone, Phase: Open}, "<p>You are not in line.</p>", "<p>您还没有排上队。</p>", true},
		{me{State: hasNone, Phase: PreQueue, StartsAt: 600_000}, "You are not in line. The sale starts in about 10 minutes.",
			"您还没有排上队。活动约 10 分钟后开始", true},
		{me{State: hasNone, Phase: Closed, StartsAt: 3 * 3600_000, Barred: reject.NotStarted},
			"You are not in line. The waiting room opens in about 3 hours.", "约 3 小时后开放排队", false},
		{me{State: hasNone, Phase: Drain, Barred: reject.Paused}, "No new people are taken in now", "不再接受新的排队", false},
		{me{State: IsWaiting, Phase: Open, ETA: &long}, "About 10 minutes to wait.", "预计等待约 10 分钟。", false},
		{me{State: hasNone, Phase: Over, Barred: reject.SoldOut}, "<h1>Sold out</h1>", "<h1>商品已售罄</h1>", false},
		{me{State: hasNone, Phase: Over, Barred: reject.Ended}, "<h1>The sale is over</h1>", "<h1>活动已结束</h1>", false},
	} {
		for language, want := range map[string]string{"en": c.en, "zh-CN": c.zh} {
			page := string(r.page(&proxy.RoomQuestion{Language: []byte(language)}, &c.m, "/"))
			if !strings.Contains(page, want) || strings.Contains(page, "<button>") != c.button {
				t.Errorf("%q, button %v, is missing in\n%s", want, c.button, page)
			}
		}
	}
}
