package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sluice/admin"
	"sluice/config"
)

func busyGate() *admin.Status {
	s := &admin.Status{Version: "1.0", Host: "gate-1", Phase: "serving", Ready: true, Mode: "enforce", Config: "abcdef",
		Reload:    admin.Reload{OK: true},
		Overrides: []admin.Override{{ID: "3", Key: "limits.window.max", Value: 50, Before: 100}},
		Second: &admin.Second{At: 100, Span: 2, Requests: 3000, Admitted: 1000, Unknown: 2,
			Rejected: map[string]int64{"window": 400,
				"sold_out": 1600},
			Upstream: admin.UpstreamSecond{Requests: 1000, P50: 12, P99: 45, InFlight: 20, Limit: 256, Up: 1, Targets: 2},
			Redis:    &admin.RedisSecond{Calls: 200, P50: 0.3, Up: false}}}
	for i := range 20 {
		s.Second.Stock = append(s.Second.Stock, admin.StockSecond{SKU: fmt.Sprintf("sku-%d", i), Total: 100, Sold: int64(i)})
	}
	return s
}

func TestView_TheBoardFitsIntoATerminal(t *testing.T) {
	s := busyGate()
	s.Checks = []admin.Probed{{Name: "redis", Detail: strings.Repeat("away ", 100)}}
	s.Second.Stock[0].SKU = "\x1b[2J\u009b2J" + strings.Repeat("库存", 60)
	text := View{Width: 80, Height: 22}.Draw(s, make([]admin.Second, 60), "")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 22 || !strings.HasSuffix(lines[21], "lines more") {
		t.Errorf("%d lines: %q", len(lines), lines[len(lines)-1])
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d wide: %q", utf8.RuneCountInString(line), line)
		}
	}
	if strings.ContainsAny(text, "\x1b\u009b") {
		t.Error("without colour something commands the terminal")
	}
}

func TestView_TheBoardTellsRatesAndReasonsTheLoudestFirst(t *testing.T) {
	text := View{Width: 200, Height: 100, Admin: "127.0.0.1:8090"}.Draw(busyGate(), nil, "")
	for _, want := range []string{"in        1500/s  admitted 500/s  rejected 1000/s",
		"rejected  sold_out 800/s  window 200/s", "p50 12ms  p99 45ms", "in flight 20 of 256", "1 of 2 targets up",
		"redis     AWAY  100/s", "unknown   2 orders: sluice reservation list --unknown --admin 127.0.0.1:8090\n",
		"override  3: limits.window.max = 50, 100 again at"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestBoard_NamesTheMinuteAndTheMistakesOfAFile(t *testing.T) {
	s := busyGate()
	s.Reload = admin.Reload{Problems: []config.Problem{
		{File: "c.toml", Line: 3, Message: "is wrong"}, {File: "c.toml", Key: "mode", Message: "is odd"}}}
	text := View{Width: 200, Height: 100}.Draw(s, []admin.Second{
		{Requests: 1, Rejected: map[string]int64{"bad_request": 3},
			Causes: map[string]int64{"sku_invalid": 1, "sku_missing": 2}},
		{Requests: 2, Admitted: 1, Causes: map[string]int64{"sku_invalid": 2}}}, "")
	for _, want := range []string{"c.toml:3: is wrong\n", "c.toml: mode: is odd\n",
		"in 60 s   rejected: bad_request 3\n          causes: sku_invalid 3  sku_missing 2\n",
		"last 60 s: in =# (# = 2/s)\n", "     admitted .# (# = 1/s)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestView_OldNumbersAreNeverShownAsLive(t *testing.T) {
	at := time.Unix(1000, 0)
	w := watched{status: busyGate(), at: at, fault: errors.New("no gateway answers")}
	if text := w.page(View{Width: 120, Height: 40}, at.Add(7*time.Second)); !strings.HasPrefix(text,
		"CONNECTION LOST: these numbers are 7s old (no gateway answers)\n") {
		t.Errorf("%s", text)
	}
	w.fault = nil
	if text := w.page(View{Width: 120, Height: 40}, at); strings.Contains(text, "LOST") {
		t.Errorf("%s", text)
	}
}

// Numbers that Redis does not confirm are not shown as those of now.
func TestView_TheBoardSaysWhichStockIsOld(t *testing.T) {
	s := admin.Status{Second: &admin.Second{Span: 1,
		Stock: []admin.StockSecond{{SKU: "1001", Total: 9, Sold: 2, Free: 7}}}}
	for _, c := range []struct {
		redis *admin.RedisSecond
		old   bool
	}{{nil, false}, {&admin.RedisSecond{Up: true}, false}, {&admin.RedisSecond{}, true}} {
		s.Second.Redis = c.redis
		if text := (View{Width: 100, Height: 40}).Draw(&s, nil, ""); strings.Contains(text, "OLD STOCK") != c.old ||
			!strings.Contains(text, "1001") {
			t.Errorf("%+v:\n%s", c.redis, text)
		}
	}
}
