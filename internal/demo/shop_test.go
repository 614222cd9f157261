package demo

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/load"
	"sluice/internal/testkit"
)

// client keeps no connection, so that none is left when the test ends.
func client() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// ask sends one request and gives the status and the body.
func ask(t *testing.T, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client().Do(req)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, string(body)
}

func TestShop_OneUserBuysOnce(t *testing.T) {
	shop := quickShop(t, 100, holding(100))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { ask(t, "POST", "http://"+shop.Addr()+"/api/seckill/1001/order", "Cookie", "uid=one") })
	}
	all.Wait()
	if b := shop.Totals(); b.Orders != 1 || b.Requests != 50 || b.Twice != 0 || b.UnderWay != 0 {
		t.Errorf("orders %d, received %d, twice %d, in flight %d; want 1, 50, 0, 0", b.Orders, b.Requests, b.Twice,
			b.UnderWay)
	}
}

func TestShop_AnswersWithStatusAndCode(t *testing.T) {
	shop := quickShop(t, 1, holding(1))
	for _, c := range []struct {
		path, cookie string
		status       int
		body         string
	}{
		{"/api/seckill/1001/order", "", 401, `{"code":40100,`},
		{"/api/seckill/1001/order", "uid=" + strings.Repeat("x", maxUser+1), 401, `{"code":40100,`},
		{"/api/seckill/9/order", "uid=a", 404, `{"code":40400,`},
		{"/api/seckill/1001/order", "uid=a", 200, `{"code":0,"msg":"ok","order":"D000001"}`},
		{"/api/seckill/1001/order", "uid=a", 409, `{"code":40902,`},
		{"/api/seckill/1001/order", "uid=b", 409, `{"code":40901,`},
	} {
		resp, body := ask(t, "POST", "http://"+shop.Addr()+c.path, "Cookie", c.cookie)
		if resp.StatusCode != c.status || !strings.HasPrefix(body, c.body) {
			t.Errorf("%s of %q: %d %s, want %d %s", c.path, c.cookie, resp.StatusCode, body, c.status, c.body)
		}
	}
	if resp, _ := ask(t, "GET", "http://"+shop.Addr()+"/healthz"); resp.StatusCode != 200 {
		t.Errorf("/healthz: %d", resp.StatusCode)
	}
}

func TestShop_WhoWasSoldOutMayBuyAfterARestock(t *testing.T) {
	var stock shelf
	shop := quickShop(t, 1, stock.take)
	order := func() int {
		resp, _ := ask(t, "POST", "http://"+shop.Addr()+"/api/seckill/1001/order", "Cookie", "uid=a")
		return resp.StatusCode
	}
	before := order()
	stock.left.Add(1)
	if after := order(); before != 409 || after != 200 {
		t.Errorf("%d before and %d after the restock, want 409 and 200", before, after)
	}
	if b := shop.Totals(); b.Units != 1 || b.Oversold != 0 {
		t.Errorf("units %d, oversold %d; want 1, 0", b.Units, b.Oversold)
	}
}

func TestShop_ClosingShopAnswersWhoWaitsInLine(t *testing.T) {
	shop := open(t, load.ShopOptions{Units: 5, Take: holding(5), Capacity: 1, Latency: time.Hour})
	statuses := make(chan int)
	for _, uid := range []string{"a", "b", "c"} {
		go func() {
			resp, _ := ask(t, "POST", "http://"+shop.Addr()+"/api/seckill/1001/order", "Cookie", "uid="+uid)
			statuses <- resp.StatusCode
		}()
	}
	testkit.Eventually(t, "they have arrived", func() bool { return shop.Totals().UnderWay == 3 })
	shop.Close()
	for range 3 {
		if got := <-statuses; got != 503 {
			t.Errorf("answered %d, want 503", got)
		}
	}
	if b := shop.Totals(); b.Orders != 0 || b.PeakInFlight != 3 {
		t.Errorf("orders %d, highest in flight %d; want 0 and 3", b.Orders, b.PeakInFlight)
	}
}

func TestShop_PageSpeaksTheReadersLanguageAndGivesAUid(t *testing.T) {
	shop := quickShop(t, 1, holding(1))
	url := "http://" + shop.Addr() + "/"
	resp, page := ask(t, "GET", url, "Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8")
	if !strings.Contains(page, `lang="zh-CN"`) || !strings.Contains(page, "立即抢购") {
		t.Errorf("the page is not Chinese:\n%s", page)
	}
	if !strings.Contains(page, `action="/api/seckill/1001/order"`) {
		t.Error("the button does not order")
	}
	cookies := resp.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "uid" || len(cookies[0].Value) < 16 {
		t.Fatalf("cookies %v, want a uid", cookies)
	}
	resp, page = ask(t, "GET", url, "Accept-Language", "en-GB,zh;q=0.5", "Cookie", "uid="+cookies[0].Value)
	if !strings.Contains(page, `lang="en"`) || !strings.Contains(page, "Buy now") || len(resp.Cookies()) != 0 {
		t.Errorf("the second page is not English, or gives another uid: %v", resp.Cookies())
	}
	if strings.Contains(page, "://") && !strings.Contains(page, "http://www.w3.org") {
		t.Error("the page loads something from elsewhere")
	}
}

func TestShop_PageEscapesTheSKU(t *testing.T) {
	p, err := newPages(`"><script>alert(1)</script>`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(p.en), "<script>alert") {
		t.Error("the SKU became markup")
	}
}

func TestShop_WithoutWhatItNeedsDoesNotOpen(t *testing.T) {
	good := load.ShopOptions{Capacity: 1, Take: bottomless}
	for name, spoil := range map[string]func(*load.ShopOptions){
		"no capacity":    func(o *load.ShopOptions) { o.Capacity = 0 },
		"two stocks":     func(o *load.ShopOptions) { o.Reserved = true },
		"negative units": func(o *load.ShopOptions) { o.Units = -1 },
		"negative time":  func(o *load.ShopOptions) { o.Latency = -1 },
	} {
		o := good
		spoil(&o)
		if s, err := OpenShop(o); err == nil {
			s.Close()
			t.Errorf("%s: it opens", name)
		}
	}
}
