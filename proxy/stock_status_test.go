package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

// fixedStock is what is public about SKUs, at a time, both set by the test.
type fixedStock struct {
	at   int64
	skus map[string]StockStatus
}

func (s *fixedStock) Time(int64) int64 { return s.at }

func (s *fixedStock) Status(_ int64, sku []byte) StockStatus {
	if status, ok := s.skus[string(sku)]; ok {
		return status
	}
	return StockStatus{Free: -1}
}

func showing(show StockStatusOptions) (Options, *fixedStock) {
	o := options(&recorder{})
	s := &fixedStock{at: 1_000, skus: map[string]StockStatus{
		"soon":     {Phase: PhaseNotStarted, Opens: 1_500, Closes: 9_000, Free: 7},
		"open":     {Phase: PhaseInStock, Free: 11},
		"few":      {Phase: PhaseInStock, Free: 10, Closes: 9_000},
		"sold-out": {Phase: PhaseSoldOut},
		"ended":    {Phase: PhaseEnded, Closes: 900, Free: -1},
		"sold":     {Phase: PhaseEnded},
		"paused":   {Phase: PhasePaused, Free: -1},
		"unread":   {Phase: PhaseInStock, Free: -1},
		`q"\`:      {Phase: PhaseInStock, Free: 1},
	}}
	o.Availability, o.StockStatus = s, show
	return o, s
}

func TestStockStatus_TellsWhatIsLeft(t *testing.T) {
	few, exact := StockStatusOptions{Few: 10}, StockStatusOptions{Few: 10, Exact: true}
	for _, tt := range []struct {
		show       StockStatusOptions
		path, want string
	}{
		{few, "/soon", `"sku":"soon","phase":"waiting","opens_at_ms":1500,"opens_in_ms":500,"closes_at_ms":9000`},
		{few, "/open", `"sku":"open","phase":"open","left":"many"`},
		{few, "/few?now=1", `"sku":"few","phase":"open","left":"few","closes_at_ms":9000`},
		{exact, "/few", `"sku":"few","phase":"open","left":"few","free":10,"closes_at_ms":9000`},
		{StockStatusOptions{Few: -1}, "/few", `"sku":"few","phase":"open","closes_at_ms":9000`},
		{few, "/sold", `"sku":"sold","phase":"ended","left":"none"`},
		{few, "/sold-out", `"sku":"sold-out","phase":"sold_out","left":"none"`},
		{few, "/ended", `"sku":"ended","phase":"ended"`},
		{few, "/paused", `"sku":"paused","phase":"paused"`},
		{exact, "/unread", `"sku":"unread","phase":"open"`},
		{few, "/invented", `"sku":"invented","phase":"unknown"`},
		{few, "/q%22%5C", `"sku":"q\"\\","phase":"open","left":"few"`},
		{few, "?sku=sold-out&sku=open", `"stock":[{"sku":"sold-out","phase":"sold_out","left":"none"},` +
			`{"sku":"open","phase":"open","left":"many"}]`},
	} {
		o, _ := showing(tt.show)
		addr, _ := gateway(t, o)
		resp, body := talk(t, addr, "GET /.sluice/stock"+tt.path+" HTTP/1.1\r\nHost: shop\r\n"+
			"Origin: https://shop.example\r\n\r\n")
		want := `{"server_time_ms":1000,` + tt.want + "}\n"
		if resp.StatusCode != 200 || body != want || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s\nwant %s", tt.path, resp.StatusCode, body, want)
		}
		h := resp.Header
		if h.Get("Content-Type") != "application/json" || h.Get("Sluice-Time") != "1000" ||
			h.Get("Access-Control-Allow-Origin") != "https://shop.example" || h.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", tt.path, h)
		}
	}
}

func TestStockStatus_ETagCoversAllButTheTime(t *testing.T) {
	o, s := showing(StockStatusOptions{Few: 10})
	addr, _ := gateway(t, o)
	ask := func(path, has string) (int, string, string) {
		resp, body := talk(t, addr, "GET /.sluice/stock"+path+" HTTP/1.1\r\nHost: shop\r\nIf-None-Match: "+has+"\r\n\r\n")
		return resp.StatusCode, resp.Header.Get("ETag"), body
	}
	_, tag, _ := ask("/soon", `"x"`)
	s.at = 1_001
	for _, has := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
		if status, same, body := ask("/soon", has); status != 304 || same != tag || body != "" {
			t.Errorf("with %s: %d %s %q", has, status, same, body)
		}
	}
	tags := map[string]bool{tag: true}
	for _, status := range []StockStatus{{Phase: PhaseNotStarted, Opens: 1_501, Closes: 9_000},
		{Phase: PhaseInStock, Free: 5}, {Phase: PhaseInStock, Free: 50}, {Phase: PhaseSoldOut},
		{Phase: PhaseEnded}} {
		s.skus["soon"] = status
		code, next, _ := ask("/soon", tag)
		if code != 200 || tags[next] {
			t.Errorf("%+v: %d, tag %s was there before", status, code, next)
		}
		tags[next] = true
	}
	s.skus["soon"] = StockStatus{Phase: PhaseInStock, Free: 51}
	if _, next, _ := ask("/soon", ""); !tags[next] {
		t.Error("the tag tells how many are left, and the answer does not")
	}
}

func TestStockStatus_QuestionNeverReachesTheUpstream(t *testing.T) {
	o, _ := showing(StockStatusOptions{Few: 10})
	up := &recorder{}
	o.Upstream = up
	addr, _ := gateway(t, o)
	for _, path := range []string{"/", "/a%20b", "/%7b1%7d", "/%zz", "/a/b%20c", "", "?", "?sku=", "?sku=a&sku=%7b",
		"?sku=a;b", "?" + strings.Repeat("sku=a&", maxStockQuery+1)} {
		if resp, _ := talk(t, addr, "GET /.sluice/stock"+path+" HTTP/1.1\r\nHost: shop\r\n\r\n"); resp.StatusCode != 400 {
			t.Errorf("%q: %d", path, resp.StatusCode)
		}
	}
	resp, body := talk(t, addr, "HEAD /.sluice/stock/open HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d %q", resp.StatusCode, body)
	}
	if got := up.all(); len(got) != 0 {
		t.Errorf("the upstream saw %q", got)
	}
	for _, other := range []string{"GET /.sluice/stocks", "POST /.sluice/stock/open"} {
		if resp, _ := talk(t, addr, other+" HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n"); resp.StatusCode != 404 {
			t.Errorf("%s: %d", other, resp.StatusCode)
		}
	}
	if got := up.all(); len(got) != 0 {
		t.Errorf("the upstream saw %q", got)
	}
}
