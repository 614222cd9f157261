package route

import (
	"strings"
	"testing"

	"sluice/proxy/param/paramtest"
	"sluice/proxy/reject"
)

// A row that is ambiguous is rejected beside any route; one that is literal passes.
func TestTable_ReadingsOfTargets(t *testing.T) {
	tables := map[paramtest.Kind]*Table{
		paramtest.Target: tableOf(t, "!POST /order/{sku}", "/"),
		paramtest.Slash:  tableOf(t, "!POST /order/{sku}/", "/"),
	}
	rows := 0
	for _, row := range paramtest.Readings {
		table := tables[row.Kind]
		if table == nil {
			continue
		}
		rows++
		want := reject.NoCause
		if row.Decision == paramtest.Ambiguous {
			want = reject.PathNotCanonical
		}
		if _, _, cause := match(table, "POST "+row.Input); cause != want {
			t.Errorf("%s, which %v read as %s: %v, want %v", row.Input, row.Readers, row.Reads, cause, want)
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

// An application in a folder knows its folder, or it does not. Many scripts cost no more than a few.
func TestTable_ScriptInAFolderIsAmbiguous(t *testing.T) {
	table := tableOf(t, "!POST /shop/order/{sku}", "!POST /index.php/buy/{sku}", "/")
	for path, want := range map[string]reject.Cause{
		"/shop/index.php/order/7":                  reject.PathNotCanonical,
		"/shop/index.php/Order/%37":                reject.PathNotCanonical,
		"/index.php/shop/order/7":                  reject.PathNotCanonical,
		"/shop/a.php/x/b.php/order/7":              0,
		"/other/index.php/order/7":                 0,
		"/shop/index.php":                          0,
		"/index.php/buy/7":                         0, // a route of its own
		strings.Repeat("/a.php", 3) + "/x":         reject.PathNotCanonical,
		strings.Repeat("/a.php", 1000) + "/x":      reject.PathNotCanonical,
		strings.Repeat("/aphp", 1000) + "/order/7": 0,
	} {
		if _, _, cause := match(table, "POST "+path); cause != want {
			t.Errorf("%.60s: %v, want %v", path, cause, want)
		}
	}
}

// A server runs the script, and hands the rest of the path to it.
func TestTable_GuardedScriptIsReachedWithWhatFollowsIt(t *testing.T) {
	for _, c := range []struct {
		routes []string
		path   string
		want   reject.Cause
	}{
		{[]string{"!POST /order.php", "/"}, "/order.php/x", reject.PathNotCanonical},
		{[]string{"!POST /order.php", "/"}, "/order.php/x.php", reject.PathNotCanonical},
		{[]string{"!POST /order.php", "/"}, "/order.ph%70/x", reject.PathNotCanonical},
		{[]string{"!POST /order.php", "/"}, "/%6frder.PHP//x", reject.PathNotCanonical},
		{[]string{"!POST /order.php", "/"}, "/page.php/x", 0},
		{[]string{"!POST /order.php", "/"}, "/order.php", 0},
		{[]string{"!POST /order.php", "!POST /order.php/{sku}", "/"}, "/order.php/7", 0}, // a route of its own
		{[]string{"?POST /order.php", "/"}, "/order.php/x", reject.PathNotCanonical},
		{[]string{"?POST /index.php", "?POST /index.php/shop/{sku}", "/"}, "/index.php/shop/7", 0},
		{[]string{"!POST /index.php", "/index.php/about", "/"}, "/index.php/about", 0},
		{[]string{"/index.php/", "!POST /order/{sku}", "/"}, "/index.php/order/7", reject.PathNotCanonical},
		{[]string{"!POST /{app}.php/order/{sku}", "!POST /order/{sku}", "/"}, "/index.php/order/7", 0},
		{[]string{"/static/", "!POST /order/{sku}", "!POST /{a}/{b}", "/"}, "/static/x.php/Static/foo",
			reject.PathNotCanonical},
		{[]string{"?POST /order.php", "/"}, "/a/order.php/x", 0},
		// A route that takes all below a folder takes the script and what follows it, too.
		{[]string{"!POST /api/order/{sku}", "!POST /api/", "/"}, "/api/index.php/order/2", reject.PathNotCanonical},
		{[]string{"!POST /api/order/{sku}", "!POST /api/", "/"}, "/api/index.php/else/2", 0},
		{[]string{"!POST /x/{sku}/", "/"}, "/x/index.php/order/2", reject.PathNotCanonical}, // another SKU
		{[]string{"!POST /"}, "/index.php/order/2", 0},
		{[]string{"?POST /"}, "/index.php/order/2", 0},
		{[]string{"?POST /shop/", "/"}, "/shop/index.php/order/2", 0},
		{[]string{"?POST /shop/", "/"}, "/index.php/shop/2", reject.PathNotCanonical},
	} {
		if _, _, cause := match(tableOf(t, c.routes...), "POST "+c.path); cause != c.want {
			t.Errorf("%s by %v: %v, want %v", c.path, c.routes, cause, c.want)
		}
	}
}

func TestTable_AuthorityIsNoPartOfThePath(t *testing.T) {
	table := tableOf(t, "/static/", "!POST /order/{sku}", "!POST shop.example/buy", "/")
	for path, want := range map[string]reject.Cause{
		"//x/order/7":           reject.PathNotCanonical,
		"//x/Order/%37":         reject.PathNotCanonical,
		"/;a/x/order/7":         reject.PathNotCanonical,
		"/;%2fa/x/order/7":      reject.PathNotCanonical,
		"//shop.example/buy":    reject.PathNotCanonical, // the authority is another host
		"//static/order/7":      reject.PathNotCanonical,
		"//x/y/order/7":         0,
		"//x/order":             0,
		"//x/order/7/y":         0,
		"//order":               0,
		"/x/y//z/order/7":       0,
		"/static//evil/order/7": 0,
		"//":                    0,
		"//img.example/a.png":   0,
	} {
		if _, _, cause := match(table, "POST other.example"+path); cause != want {
			t.Errorf("%s: %v, want %v", path, cause, want)
		}
	}
}

func TestTable_SlashAtTheEndHasARouteOfItsOwnOrIsAmbiguous(t *testing.T) {
	for _, c := range []struct {
		routes []string
		path   string
		want   reject.Cause
	}{
		{[]string{"!POST /order/{sku}/", "/"}, "/order/7", reject.PathNotCanonical},
		{[]string{"!POST /order/{sku}/", "/"}, "/Order/7", reject.PathNotCanonical},
		{[]string{"!POST /order/{sku}/", "/"}, "/order/7/", 0},
		{[]string{"!POST /order/{sku}/", "/"}, "/order", 0},
		{[]string{"!POST /buy/", "/"}, "/buy", reject.PathNotCanonical},
		{[]string{"!POST /buy/{x...}", "/"}, "/buy", reject.PathNotCanonical},
		{[]string{"!POST /buy/"}, "/buy", reject.PathNotCanonical},
		{[]string{"!POST /buy/", "/"}, "/buyer", 0},
		{[]string{"!POST /", "/"}, "/buy", 0},
		{[]string{"!POST /buy/", "!POST /{sku}"}, "/buy", reject.PathNotCanonical},
		{[]string{"!POST /{sku}", "!POST /buy/"}, "/buy", 0}, // the first route takes it in each reading
		// A route for each of the two spellings says what each means.
		{[]string{"!POST /buy/", "!POST /buy", "/"}, "/buy", 0},
		{[]string{"!POST /buy/", "!POST /buy", "/"}, "/buy/", 0},
		{[]string{"!POST /buy", "!POST /buy/", "/"}, "/buy/", 0},
		{[]string{"!POST /buy", "!POST /buy/", "/"}, "/BUY/", reject.PathNotCanonical},
		{[]string{"!POST /order/{a}", "!POST /order/{b}/", "/"}, "/order/7/", 0},
		{[]string{"/buy", "!POST /buy/", "/"}, "/buy", 0},
		{[]string{"!POST /buy/", "/buy"}, "/buy", reject.PathNotCanonical}, // the route that guards stock comes first
		{[]string{"/{x}/{y}/", "!POST /order/{sku}"}, "/order/%37", 0},
	} {
		if _, _, cause := match(tableOf(t, c.routes...), "POST "+c.path); cause != c.want {
			t.Errorf("%s by %v: %v, want %v", c.path, c.routes, cause, c.want)
		}
	}
	table := tableOf(t, "!POST /order/{sku}/", "/")
	_, detail := table.Match(Query{Method: []byte("POST"), Path: []byte("/order/7")})
	if got := detail.String(); got != "path is not canonical: write it as POST /order/{sku}/ does" {
		t.Error(got)
	}
}

// A server finds an index file behind a path, and takes what follows that. A route of the folder takes all of these.
func TestTable_FolderTakesItsIndexFile(t *testing.T) {
	table := tableOf(t, "!POST /buy", "!POST /buy/", "!POST /order/{sku}", "!POST /order/{sku}/", "/")
	for path, want := range map[string]string{
		"/buy": "POST /buy", "/buy/": "POST /buy/", "/buy/index.php": "POST /buy/", "/buy/index.php/x": "POST /buy/",
		"/buy/x": "POST /buy/", "/order/7": "POST /order/{sku}", "/order/7/index.php": "POST /order/{sku}/", "/buyer": "/",
	} {
		if text, _, cause := match(table, "POST "+path); text != want || cause != 0 {
			t.Errorf("%s is taken by %s, %v, want %s", path, text, cause, want)
		}
	}
}
