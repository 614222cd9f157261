package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

// window shows SKUs that the test sets, at a time that it sets.
type window struct {
	at   int64
	skus map[string]Shown
}

func (w *window) Time(int64) int64 { return w.at }
func (w *window) Show(_ int64, sku []byte) Shown {
	if s, ok := w.skus[string(sku)]; ok {
		return s
	}
	return Shown{Free: -1}
}

func displaying(show Show) (Options, *window) {
	o := options(&seen{})
	w := &window{at: 1_000, skus: map[string]Shown{
		"soon": {Phase: Waiting, Opens: 1_500, Closes: 9_000, Free: 7}, "open": {Phase: Open, Free: 11}, "few": {Phase: Open, Free: 10, Closes: 9_000},
		"gone": {Phase: Gone}, "over": {Phase: Over, Closes: 900, Free: -1}, "sold": {Phase: Over}, "halted": {Phase: Halted, Free: -1}, "untold": {Phase: Open, Free: -1},
		`q"\`: {Phase: Open, Free: 1},
	}}
	o.Shelf, o.Show = w, show
	return o, w
}

func TestPagesAreToldWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		show       Show
		path, want string
	}{
		{Show{Few: 10}, "/soon", `{"server_time_ms":1000,"sku":"soon","phase":"waiting","opens_at_ms":1500,"opens_in_ms":500,"closes_at_ms":9000}`},
		{Show{Few: 10}, "/open", `{"server_time_ms":1000,"sku":"open","phase":"open","left":"many"}`},
		{Show{Few: 10}, "/few?now=1", `{"server_time_ms":1000,"sku":"few","phase":"open","left":"few","closes_at_ms":9000}`},
		{Show{Few: 10, Exact: true}, "/few", `{"server_time_ms":1000,"sku":"few","phase":"open","left":"few","free":10,"closes_at_ms":9000}`},
		{Show{Few: -1}, "/few", `{"server_time_ms":1000,"sku":"few","phase":"open","closes_at_ms":9000}`},
		{Show{Few: 10}, "/sold", `{"server_time_ms":1000,"sku":"sold","phase":"ended","left":"none"}`},
		{Show{Few: 10}, "/gone", `{"server_time_ms":1000,"sku":"gone","phase":"sold_out","left":"none"}`},
		{Show{Few: 10}, "/over", `{"server_time_ms":1000,"sku":"over","phase":"ended"}`},
		{Show{Few: 10}, "/halted", `{"server_time_ms":1000,"sku":"halted","phase":"paused"}`},
		{Show{Few: 10, Exact: true}, "/untold", `{"server_time_ms":1000,"sku":"untold","phase":"open"}`},
		{Show{Few: 10}, "/invented", `{"server_time_ms":1000,"sku":"invented","phase":"unknown"}`},
		{Show{Few: 10}, "/q%22%5C", `{"server_time_ms":1000,"sku":"q\"\\","phase":"open","left":"few"}`},
		{Show{Few: 10}, "?sku=gone&sku=open", `{"server_time_ms":1000,"stock":[{"sku":"gone","phase":"sold_out","left":"none"},{"sku":"open","phase":"open","left":"many"}]}`},
	} {
		o, _ := displaying(tt.show)
		addr, _ := gate(t, o)
		resp, body := talk(t, addr, "GET /.sluice/stock"+tt.path+" HTTP/1.1\r\nHost: shop\r\nOrigin: https://a.example\r\n\r\n")
		if resp.StatusCode != 200 || body != tt.want+"\n" || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s\nwant %s", tt.path, resp.StatusCode, body, tt.want)
		}
		if h := resp.Header; h.Get("Content-Type") != "application/json" || h.Get("Sluice-Time") != "1000" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", tt.path, h)
		}
	}
}

func TestStockTagIsOfAllButTheTime(t *testing.T) {
	o, w := displaying(Show{Few: 10})
	addr, _ := gate(t, o)
	ask := func(path, has string) (int, string, string) {
		resp, body := talk(t, addr, "GET /.sluice/stock"+path+" HTTP/1.1\r\nHost: shop\r\nIf-None-Match: "+has+"\r\n\r\n")
		return resp.StatusCode, resp.Header.Get("ETag"), body
	}
	_, tag, _ := ask("/soon", `"x"`)
	w.at = 1_001
	for _, has := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
		if status, same, body := ask("/soon", has); status != 304 || same != tag || body != "" {
			t.Errorf("with %s: %d %s %q", has, status, same, body)
		}
	}
	tags := map[string]bool{tag: true}
	for _, s := range []Shown{{Phase: Waiting, Opens: 1_501, Closes: 9_000}, {Phase: Open, Free: 5}, {Phase: Open, Free: 50}, {Phase: Gone}, {Phase: Over}} {
		w.skus["soon"] = s
		status, next, _ := ask("/soon", tag)
		if status != 200 || tags[next] {
			t.Errorf("%+v: %d, tag %s was there before", s, status, next)
		}
		tags[next] = true
	}
	w.skus["soon"] = Shown{Phase: Open, Free: 51}
	if _, next, _ := ask("/soon", ""); !tags[next] {
		t.Error("the tag tells how many are left, and the answer does not")
	}
}

func TestQuestionsForStockAreLimitedLikeAllAndNeverReachTheShop(t *testing.T) {
	o, _ := displaying(Show{Few: 10})
	shop := &seen{}
	o.Shop = shop
	addr, _ := gate(t, o)
	for _, path := range []string{"/", "/a%20b", "/%7b1%7d", "/%zz", "", "?", "?sku=", "?sku=a&sku=%7b", "?" + strings.Repeat("sku=a&", mostAsked+1)} {
		if resp, _ := talk(t, addr, "GET /.sluice/stock"+path+" HTTP/1.1\r\nHost: shop\r\n\r\n"); resp.StatusCode != 400 {
			t.Errorf("%q: %d", path, resp.StatusCode)
		}
	}
	if resp, body := talk(t, addr, "HEAD /.sluice/stock/open HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d %q", resp.StatusCode, body)
	}
	if got := shop.all(); len(got) != 0 {
		t.Errorf("the shop saw %q", got)
	}
	for _, other := range []string{"GET /.sluice/stocks", "POST /.sluice/stock/open"} { // the shop's, as before
		talk(t, addr, other+" HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n")
	}
	if got := shop.all(); len(got) != 2 {
		t.Errorf("the shop saw %q", got)
	}
}

func FuzzStockAsked(f *testing.F) {
	for _, seed := range []string{"/.sluice/stock/1001\x00", "/.sluice/stock\x00sku=a&sku=b", "/.sluice/stock/%zz\x00;", "/.sluice/stock/a\x00sku=%7b"} {
		path, query, _ := strings.Cut(seed, "\x00")
		f.Add([]byte(path), []byte(query))
	}
	f.Fuzz(func(t *testing.T, path, query []byte) {
		skus, one := stockAsked(path, query)
		if one && len(skus) != 1 || len(skus) > mostAsked {
			t.Errorf("%d SKUs", len(skus))
		}
		for _, sku := range skus {
			if !ValidSKU(sku) {
				t.Errorf("%q is asked for", sku)
			}
			if text := appendText(nil, sku); !json.Valid(text) {
				t.Errorf("%q is no JSON", text)
			}
		}
	})
}

func BenchmarkStockAnswer(b *testing.B) {
	show, s, sku, text := Show{Few: 10}, Shown{Phase: Open, Free: 7, Closes: 9_000}, []byte("1001"), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		text = show.append(text[:0], sku, s, 1_000)
		tag := newTag()
		tag.add(show, sku, s)
	}
}
