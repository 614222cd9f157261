// Package demo holds a flash sale to try Sluice with nothing installed: a small shop of limited capacity, a crowd that
// wants to buy more than there is, and a result of a few lines that has to add up.
//
// Where the gateway takes the units a few orders go wrong on purpose: that is when books cease to balance. The report
// tells what was seen and no more; Report.Err names the promise that was broken.
//
// Options.Run puts a gateway between crowd and shop. It is no benchmark: the three share one machine.
package demo

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"sluice/internal/load"
)

// SKU is what a demonstration sells.
const SKU = "1001"

// naiveWorkers is how many requests a naive shop bears at once.
const naiveWorkers = 500

// OpenShop starts a shop that sells the SKU: a product page at /, orders at /api/seckill/{sku}/order, and /healthz. It
// knows users by a cookie, and has a few of a crowd's orders go wrong where the gateway takes the units. The caller
// closes it.
func OpenShop(o load.ShopOptions) (*load.Shop, error) {
	p, err := newPages(SKU)
	if err != nil {
		return nil, fmt.Errorf("open shop: %w", err)
	}
	o.SKU, o.Page, o.User = SKU, p.serve, userOf
	if o.Reserved {
		o.Fault = func(_ int64, user string) load.Fault { return mishapOf(user) }
	}
	if o.Naive {
		o.MaxInside = naiveWorkers
	}
	return load.OpenShop(o)
}

// serve answers what is no order.
func (p pages) serve(ctx *fasthttp.RequestCtx) bool {
	const before, behind = "/api/seckill/", "/order"
	switch path := string(ctx.Path()); {
	case ctx.IsPost() && path == before+SKU+behind:
		return false
	case ctx.IsPost() && strings.HasPrefix(path, before) && strings.HasSuffix(path, behind):
		load.NotSold.Write(ctx, "")
	case ctx.IsGet() && path == "/":
		p.serveProduct(ctx)
	case ctx.IsGet() && path == "/healthz":
		ctx.SetBodyString("ok\n")
	default:
		ctx.Error("not found", fasthttp.StatusNotFound)
	}
	return true
}

// serveProduct gives the product page, and a uid to who has none.
func (p pages) serveProduct(ctx *fasthttp.RequestCtx) {
	if userOf(ctx) == "" {
		var c fasthttp.Cookie
		c.SetKey(uidCookie)
		c.SetValue(rand.Text())
		c.SetPath("/")
		c.SetHTTPOnly(true)
		c.SetSameSite(fasthttp.CookieSameSiteLaxMode)
		ctx.Response.Header.SetCookie(&c)
	}
	h := &ctx.Response.Header
	h.SetContentType("text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store") // it may carry a uid
	h.Set("Vary", "Accept-Language")
	page := p.en
	if prefersChinese(string(ctx.Request.Header.Peek("Accept-Language"))) {
		page = p.zh
	}
	ctx.SetBody(page)
}

// prefersChinese looks at the first language alone: browsers name the one of their own first.
func prefersChinese(accept string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(accept)), "zh")
}

// uidCookie carries who buys; the product page sets it.
const uidCookie = "uid"

// maxUser is the longest user in bytes.
const maxUser = 64

// userOf gives the user of a request; "" when it names none, or none that could be one of the page's.
func userOf(ctx *fasthttp.RequestCtx) string {
	if user := string(ctx.Request.Header.Cookie(uidCookie)); len(user) <= maxUser {
		return user
	}
	return ""
}

// Of a hundred shoppers of a crowd two are declined, one hears 500 and one hears nothing in time: by their numbers, so
// that two sales compare. These numbers have some among them who press first, so that every sale has its mishaps. Who
// comes with a browser is spared.
const (
	declinedOf50  = 19
	brokenOf100   = 52
	slowOf100     = 92
	shopperPrefix = "shopper-"
)

// mishapOf tells what goes wrong with the order of a user after the gateway has taken its unit.
func mishapOf(user string) load.Fault {
	digits, crowd := strings.CutPrefix(user, shopperPrefix)
	i, err := strconv.Atoi(digits)
	switch {
	case !crowd || err != nil:
		return load.NoFault
	case i%50 == declinedOf50:
		return load.Declined
	case i%100 == brokenOf100:
		return load.Breaks
	case i%100 == slowOf100:
		return load.Slow
	}
	return load.NoFault
}
