package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice/proxy/param"
	"sluice/proxy/route"
)

// Order says how an order of one SKU looks, in the words of the gate's configuration.
type Order struct {
	Match    string   // METHOD [HOST]/PATH of the route
	ID       string   // the SKU itself
	SKU      string   // where it stands, one variable such as "$path_sku"
	User     string   // where the user stands; "" = no user is identified
	Quantity string   // likewise, or a number
	Keys     []string // of limits: what they name of a request is each buyer's own
	Address  string   // the header that tells where a buyer comes from
	Names    string   // what the names of buyers begin with; a number follows
}

// form is an order as it goes over the wire, but for what is a buyer's own.
type form struct {
	head, tail [][]byte // a buyer's number stands between the pieces, and the address between both
	looks      []byte   // behind the place of a question
	room       []byte   // the path of the waiting room, but for what is asked there
	waits      [][]byte // behind that: a buyer's number stands between the pieces, and the address follows
}

const (
	digits = 7 // of a buyer's number: the same for all, so that lengths are
	own    = "\x01"
)

// sources are the places of a request that a crowd fills, by kind of variable.
var sources = map[param.Kind]string{param.Path: "path", param.Query: "arg", param.Cookie: "cookie",
	param.Header: "http", param.Form: "form", param.JSON: "json"}

// Fills reports a text that is one variable, which a crowd can fill, of a route that matches match.
func Fills(text, match string) bool {
	p, err := route.ParsePattern(match)
	if err != nil {
		return false
	}
	v, err := param.Compile(text, p.Names())
	return err == nil && len(v.Parts()) == 1 && sources[v.Parts()[0].Kind()] != ""
}

// betweenKeys stands between the keys of a place in JSON.
const betweenKeys = "\x00"

// places are the values of a request by where they stand.
type places map[string]map[string]string // source -> name -> value

// set puts a value wherever text has a variable that a crowd can fill. captures are the names in the route's pattern; a
// text that names others is left out.
func (p places) set(text, value string, captures []string) {
	v, _ := param.Compile(text, captures)
	for i := range v.Parts() {
		part := &v.Parts()[i]
		if source := sources[part.Kind()]; source != "" {
			p.put(source, strings.Join(part.Names(), betweenKeys), value)
		}
	}
}

// put keeps the value that a place has.
func (p places) put(source, name, value string) {
	if p[source] == nil {
		p[source] = map[string]string{}
	}
	if p[source][name] == "" {
		p[source][name] = value
	}
}

func (p places) sorted(source string) []string { return slices.Sorted(maps.Keys(p[source])) }

// compile makes the text of an order, and of requests at a waiting room.
func (o Order) compile(room string) (form, error) {
	match, err := route.ParsePattern(o.Match)
	if err != nil {
		return form{}, err
	}
	at, user := places{}, o.Names+own // who buys, and the key of the order
	at.set(o.SKU, o.ID, match.Names())
	at.set(o.User, user, match.Names())
	at.set(o.Quantity, "1", match.Names())
	for _, key := range o.Keys {
		at.set(key, user, match.Names())
	}
	if len(at["form"]) > 0 && len(at["json"]) > 0 {
		return form{}, errors.New("an order has a form or JSON, and the configuration names both")
	}
	method := "POST"
	if all := match.Methods(); len(all) > 0 && !slices.Contains(all, method) {
		method = all[0]
	}
	words := strings.Fields(o.Match)
	host := cmp.Or(strings.TrimSuffix(words[len(words)-1], match.Path()), "shop")
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nUser-Agent: "+
		"sluice-crowd\r\nIdempotency-Key: %s\r\n",
		method, at.path(match.Path()), at.query("arg", "?"), host, user)
	b.WriteString(at.fields())
	body, kind, err := at.body()
	if err != nil {
		return form{}, err
	}
	if kind != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", kind)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n%s: \x02\r\n\r\n%s", len(body)+strings.Count(body, own)*(digits-1), o.Address,
		body)
	head, tail, _ := bytes.Cut(b.Bytes(), []byte{2})
	return form{
		room: fmt.Appendf(nil, "/.sluice/room/%s/", room), waits: bytes.Split(o.waits(host, match), []byte(own)),
		head: bytes.Split(head, []byte(own)), tail: bytes.Split(tail, []byte(own)),
		looks: fmt.Appendf(nil, " HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n%s: ", host, o.Address),
	}, nil
}

// waits is what follows the place of a request at a waiting room, but for the address. It has the user alone.
func (o Order) waits(host string, match route.Pattern) []byte {
	at := places{}
	at.set(o.User, o.Names+own, match.Names())
	return fmt.Appendf(nil, "%s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nContent-Length: 0\r\n%s%s: ",
		at.query("arg", "?"), host, at.fields(), o.Address)
}

// fields are the cookies and the other fields of the header.
func (p places) fields() (text string) {
	if cookies := p.sorted("cookie"); len(cookies) > 0 {
		for i, name := range cookies {
			cookies[i] = name + "=" + p["cookie"][name]
		}
		text = "Cookie: " + strings.Join(cookies, "; ") + "\r\n"
	}
	for _, name := range p.sorted("http") {
		text += name + ": " + p["http"][name] + "\r\n"
	}
	return text
}

// path fills the captures of a pattern.
func (p places) path(pattern string) string {
	return regexp.MustCompile(`\{([A-Za-z0-9_]+)(\.\.\.)?\}`).ReplaceAllStringFunc(pattern, func(hole string) string {
		name := strings.TrimSuffix(strings.Trim(hole, "{}"), "...")
		if value := p["path"][name]; value != "" {
			return strings.ReplaceAll(url.PathEscape(value), "%01", own)
		}
		return "x"
	})
}

// query joins names and values; what is our own is not escaped.
func (p places) query(source, before string) string {
	var pairs []string
	for _, name := range p.sorted(source) {
		pairs = append(pairs, url.QueryEscape(name)+"="+p[source][name])
	}
	if len(pairs) == 0 {
		return ""
	}
	return before + strings.Join(pairs, "&")
}

func (p places) body() (text, kind string, err error) {
	if len(p["form"]) > 0 {
		return p.query("form", ""), "application/x-www-form-urlencoded", nil
	}
	if len(p["json"]) == 0 {
		return "", "", nil
	}
	var tree any
	for _, name := range p.sorted("json") {
		if tree, err = grow(tree, strings.Split(name, betweenKeys), p["json"][name]); err != nil {
			return "", "", fmt.Errorf("$json_%s: %w", strings.ReplaceAll(name, betweenKeys, "."), err)
		}
	}
	out, err := json.Marshal(tree)
	return strings.ReplaceAll(string(out), `\u0001`, own), "application/json", err
}

// mostElements bounds the arrays of a body.
const mostElements = 64

// grow puts a value into a tree of JSON.
func grow(tree any, keys []string, value string) (any, error) {
	if len(keys) == 0 {
		if value == "1" {
			return 1, nil
		}
		return value, nil
	}
	var err error
	if n, bad := strconv.Atoi(keys[0]); bad == nil && n >= 0 {
		list, ok := tree.([]any)
		if tree != nil && !ok || n >= mostElements {
			return nil, fmt.Errorf("%q is no place in what the others name", keys[0])
		}
		for len(list) <= n {
			list = append(list, nil)
		}
		list[n], err = grow(list[n], keys[1:], value)
		return list, err
	}
	table, ok := tree.(map[string]any)
	if tree != nil && !ok {
		return nil, fmt.Errorf("%q is no place in what the others name", keys[0])
	}
	if table == nil {
		table = map[string]any{}
	}
	table[keys[0]], err = grow(table[keys[0]], keys[1:], value)
	return table, err
}

// order appends the request of one buyer, who may have a pass of a waiting room.
func (f *form) order(dst []byte, buyer, address int, pass string) []byte {
	dst = appendAddress(appendPieces(dst, f.head, buyer), address)
	if pass != "" {
		dst = append(append(dst, "\r\nSluice-Pass: "...), pass...)
	}
	return appendPieces(dst, f.tail, buyer)
}

func appendPieces(dst []byte, pieces [][]byte, buyer int) []byte {
	for i, piece := range pieces {
		if i > 0 {
			dst = appendNumber(dst, buyer)
		}
		dst = append(dst, piece...)
	}
	return dst
}

// appendStatusRequest appends the question what became of an order, at the place that the gate has named.
func (f *form) appendStatusRequest(dst []byte, link string, address int) []byte {
	dst = append(append(append(dst, "GET "...), link...), f.looks...)
	return append(appendAddress(dst, address), "\r\n\r\n"...)
}

func appendNumber(dst []byte, n int) []byte {
	var text [digits]byte
	for i := digits - 1; i >= 0; i-- {
		text[i], n = byte('0'+n%10), n/10
	}
	return append(dst, text[:]...)
}

// aside is how many addresses 198.18.0.0/15 has, which is set aside for such trials (RFC 2544). An address after them
// comes from a network of their own in 2001:db8::/32 (RFC 3849).
const aside = 1 << 17

func appendAddress(dst []byte, n int) []byte {
	if n < aside {
		return fmt.Appendf(dst, "198.%d.%d.%d", 18+n>>16, n>>8&255, n&255)
	}
	return fmt.Appendf(dst, "2001:db8:%x:%x::1", n>>16&0xffff, n&0xffff)
}
