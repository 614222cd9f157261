package load

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask is the order of one buyer, as a server reads it.
func ask(t *testing.T, o Order, buyer, address int) (*http.Request, string) {
	t.Helper()
	o.Names = "loadtest-"
	f, err := o.compile("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(f.order(nil, buyer, address, "")))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}

func TestOrder_SaysWhatTheConfigurationAsksFor(t *testing.T) {
	r, body := ask(t, Order{Match: "POST shop.test/api/{area}/{sku}/{rest...}", ID: "s:1", SKU: "$path_sku",
		User: "$cookie_uid", Quantity: "$arg_n",
		Keys: []string{"$remote_addr$http_x_device", "$cookie_uid"}, Address: "X-Real-IP"}, 42, 7)
	if r.Method != "POST" || r.Host != "shop.test" || r.URL.Path != "/api/x/s:1/x" || r.URL.Query().Get("n") != "1" ||
		body != "" {
		t.Errorf("%s %s%s, body %q", r.Method, r.Host, r.URL, body)
	}
	uid, err := r.Cookie("uid")
	if err != nil || uid.Value != "loadtest-0000042" || r.Header.Get("X-Device") != "loadtest-0000042" ||
		r.Header.Get("Idempotency-Key") != "loadtest-0000042" {
		t.Errorf("%v %v, %v", uid, err, r.Header)
	}
	if at := r.Header.Get("X-Real-IP"); at != "198.18.0.7" {
		t.Error(at)
	}
}

func TestOrder_HasNamesWithOtherLetters(t *testing.T) {
	r, body := ask(t, Order{Match: "GET|POST /buy/{sku}.html", ID: "s1", SKU: "$path_sku", User: `$cookie("connect.sid")`,
		Quantity: "$form('order[qty]')", Keys: []string{`$(arg_a.b)-$header("X-Device")`}, Address: "X-Real-IP"}, 42, 7)
	const buyer = "loadtest-0000042"
	if r.Method != "POST" || r.URL.Path != "/buy/s1.html" || r.URL.Query().Get("a.b") != buyer ||
		body != "order%5Bqty%5D=1" || r.Header.Get("Cookie") != "connect.sid="+buyer || r.Header.Get("X-Device") != buyer {
		t.Errorf("%s %s, body %q, %v", r.Method, r.URL, body, r.Header)
	}
}

func TestOrder_HasTheBodyThatIsReadOfIt(t *testing.T) {
	form := Order{Match: "/buy", ID: "s", SKU: "$form_goodsId", User: "$form_uid", Quantity: "1",
		Address: "X-Forwarded-For"}
	r, body := ask(t, form, 3, 200_000)
	if r.Method != "POST" || body != "goodsId=s&uid=loadtest-0000003" ||
		r.Header.Get("X-Forwarded-For") != "2001:db8:3:d40::1" {
		t.Errorf("%s %q %v", r.Method, body, r.Header)
	}
	_, body = ask(t, Order{Match: "/buy", ID: "s", SKU: "$json_items.1.sku", User: "$json_who.id",
		Quantity: "$json_items.1.n", Address: "X"}, 3, 0)
	var tree struct {
		Items []struct {
			SKU string
			N   int
		}
		Who struct{ ID string }
	}
	if err := json.Unmarshal([]byte(body), &tree); err != nil || len(tree.Items) != 2 || tree.Items[1].SKU != "s" ||
		tree.Items[1].N != 1 || tree.Who.ID != "loadtest-0000003" {
		t.Errorf("%v: %s", err, body)
	}
	_, body = ask(t, Order{Match: "/buy", ID: "s", SKU: `$json("goods.id".sku)`, Quantity: "1", Address: "X"}, 3, 0)
	if body != `{"goods.id":{"sku":"s"}}` {
		t.Error(body)
	}
}

func TestOrder_ThatCannotBeIsRejected(t *testing.T) {
	for _, o := range []Order{
		{Match: "/", SKU: "$form_a", User: "$json_b"},
		{Match: "/", SKU: "$json_a.b", User: "$json_a"},
		{Match: "/", SKU: "$json_a.99999999.b"},
	} {
		if _, err := o.compile(""); err == nil {
			t.Errorf("%+v is an order", o)
		}
	}
}

func TestOrder_EveryBuyerIsAnotherPerson(t *testing.T) {
	f, err := Order{Match: "/", User: "$cookie_uid", Address: "X-Forwarded-For"}.compile("")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, i := range []int{0, 1, 255, 256, 65_535, 65_536, aside - 1, aside, aside + 1, 4_999_999} {
		text := string(f.order(nil, i, i, ""))
		if seen[text] {
			t.Errorf("buyer %d is another's twin", i)
		}
		seen[text] = true
	}
}

func TestOrder_SKUInThePathIsEscaped(t *testing.T) {
	r, _ := ask(t, Order{Match: "/buy/{sku}/{user}", ID: "a/b", SKU: "$path_sku", User: "$path_user", Address: "X"}, 42, 0)
	if got := r.URL.EscapedPath(); got != "/buy/a%2Fb/loadtest-0000042" {
		t.Error(got)
	}
}
