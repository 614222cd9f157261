// Package paramtest lists in which ways shops read a request other than Sluice does at first sight, and what becomes of
// it. Only tests import it: each row is a case of package param or package route.
package paramtest

// Reader is a function of a language or framework by which a shop reads a request.
type Reader uint8

// The readers.
const (
	PHPParseURL   Reader = iota // PHP: parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH)
	NodeURL                     // Node: new URL(req.url, base).pathname (WHATWG URL)
	NodeParse                   // Node: url.parse(req.url, false, true).pathname
	JavaURI                     // Java: new URI(target).getPath()
	PythonSplit                 // Python: urllib.parse.unquote(urlsplit(target).path)
	GoURL                       // Go: url.ParseRequestURI(target).Path
	ServletPath                 // Java: getServletPath() of Tomcat and Jetty, which drop ";x" and decode once
	Jetty                       // Java: getServletPath() of Jetty 9, which undoes %uXXXX, too
	PathInfo                    // PHP: $_SERVER["PATH_INFO"], by which Laravel, Symfony and ThinkPHP route
	RouterNoSlash               // Express, Gin, Laravel, Spring before 6: a slash at the end counts for nothing
	Chain                       // two of the readers above in turn, as of a front controller and a router
	PHPRequest                  // PHP: $_GET, $_POST, $_COOKIE, and $_REQUEST in which the body comes last
	Laravel                     // PHP: $request->input(), in which JSON comes before the query
	RailsParams                 // Ruby: params of Rails, in which the query comes before JSON
	Rack                        // Ruby: Rack and Rails params, in which the body comes last
	QS                          // Node: qs, so Express and Koa; allowDots for "a.b"
	Fastjson                    // Java: names of a bean without regard to letter case, "_" and "-"; the last one counts
	Servlet                     // Java: getParameter, the first value, those of the query before those of the body
	GoForm                      // Go: FormValue, the first value, those of the body before those of the query
	GoFrame                     // Go: Parse, names by letters and digits alone, and what begins with "{" is JSON
	WSGI                        // Python: values of Flask and parse_qs, those of the query before those of the form
	Netty                       // Java: QueryStringDecoder, also of Vert.x; Spring WebFlux
	Database                    // a numeric column, intval, Number: several spellings of one number
	NumReaders
)

// Decision is what becomes of a request with such a reading.
type Decision uint8

// The decisions.
const (
	// Ambiguous: beside the literal reading the request is rejected as ambiguous.
	Ambiguous Decision = iota
	// Counts: the name stands for the configured one. Beside it with another value it is ambiguous.
	Counts
	// LiteralOnly: no reader takes it for the gated order, and it passes.
	LiteralOnly
	// Invalid: the request is rejected as a bad request.
	Invalid
)

// Kind is what of a request is read.
type Kind uint8

// The kinds of rows. The order that is meant is POST /order/7 of the route POST /order/{sku}, or the SKU 7 by the name
// goods_id.
const (
	Target     Kind = iota // Input is a target, Reads its path
	Slash                  // likewise, of the route POST /order/{sku}/
	Name                   // Input is a query, form or cookie, Reads the value of goods_id
	CookieName             // likewise, of cookies alone
	Place                  // Input is a query, a line end and a form, Reads the value of goods_id
	JSONName               // Input is JSON, Reads the value of goods_id
	JSONPlace              // likewise, and JSON in place of the form
	Index                  // Input is JSON, Reads the value of items.0.goods_id
	Number                 // Input is a SKU, Reads what it is to the reader
)

// Row is one reading.
type Row struct {
	Kind     Kind
	Readers  []Reader
	Input    string
	Reads    string // by each of the readers
	Decision Decision
}

// readers are short for those that agree.
var (
	allURL = []Reader{PHPParseURL, NodeURL, JavaURI, PythonSplit}
	php    = []Reader{PHPRequest}
)

// Readings is every reading that is known.
var Readings = []Row{
	// Two slashes at the start are an authority (RFC 3986, section 4.2); WHATWG URL takes "\" for "/".
	{Target, []Reader{PHPParseURL, NodeURL, NodeParse, JavaURI, PythonSplit}, `//evil/order/7`, "/order/7", Ambiguous},
	{Target, allURL, `//user:pw@evil:80/order/7`, "/order/7", Ambiguous},
	{Target, allURL, `//[::1]/order/7`, "/order/7", Ambiguous},
	{Target, allURL, `//evil;x/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit}, `//@/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit}, `//:80/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{PHPParseURL, JavaURI, PythonSplit}, `//a:80a/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `///evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `/////evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit}, `///order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL, NodeParse}, `/\evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `/\/evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `//evil\order/7`, "/order/7", Ambiguous},
	{Target, []Reader{PHPParseURL, PythonSplit}, `//evil\x/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit}, `//evil%2fx/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit, GoURL}, `/%6frder/7`, "/order/7", Ambiguous},
	{Target, []Reader{JavaURI, PythonSplit, GoURL}, `/order%2f7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/%2fevil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/%5cevil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/%252fevil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/.//evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `//evil//evil/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/%09/evil/order/7`, "/order/7", Ambiguous}, // WHATWG URL drops tabs
	{Target, []Reader{Chain}, `/or%09der/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/x/.%09./order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `/x/../order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `/x/.%2e/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL}, `/order\7`, "/order/7", Ambiguous},
	{Target, []Reader{ServletPath}, `/order;jsessionid=1/7`, "/order/7", Ambiguous},
	{Target, []Reader{ServletPath}, `/x/..;/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{ServletPath}, `/;a//order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Jetty}, `/o%u0072der/7`, "/order/7", Ambiguous},
	{Target, []Reader{Jetty}, `/order/%u0037`, "/order/7", Ambiguous},
	{Target, []Reader{PathInfo}, `/index.php/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{PathInfo}, `/shop/app.PHP/order/7`, "/order/7", Ambiguous},
	{Target, []Reader{Chain}, `/index%2ephp/order/7/`, "/order/7", Ambiguous},
	{Target, []Reader{PathInfo}, `/index.php/x/order/7`, "/x/order/7", LiteralOnly},
	{Target, []Reader{PathInfo}, `/indexphp/order/7`, "/indexphp/order/7", LiteralOnly},
	{Target, []Reader{RouterNoSlash}, `/order/7/`, "/order/7", Ambiguous},
	{Target, []Reader{NodeURL, JavaURI, PythonSplit, GoURL}, `/x//order/7`, "/x//order/7", LiteralOnly},
	{Target, allURL, `//evil/x/order/7`, "/x/order/7", LiteralOnly},
	{Target, allURL, `//cdn/logo.png`, "/logo.png", LiteralOnly},
	{Target, []Reader{NodeURL, JavaURI, PythonSplit, GoURL}, `/evil:80/order/7`, "/evil:80/order/7", LiteralOnly},
	{Target, allURL, `/x://evil/order/7`, "/x://evil/order/7", LiteralOnly},

	// Routers add a slash at the end, or drop it.
	{Slash, []Reader{RouterNoSlash}, `/order/7`, "/order/7/", Ambiguous},
	{Slash, []Reader{Chain}, `//evil/order/7`, "/order/7/", Ambiguous},

	// PHP makes "_" of dots, spaces and an open bracket, drops spaces before the name, and ends it at NUL. Brackets
	// behind a name make a list or an object of its value; Rack and qs also take a name out of brackets.
	{Name, php, "goods.id=7", "7", Counts},
	{Name, php, "goods+id=7", "7", Counts},
	{Name, php, "goods%20id=7", "7", Counts},
	{Name, php, "goods%2eid=7", "7", Counts},
	{Name, php, "goods[id=7", "7", Counts},
	{Name, php, "goods%5Bid=7", "7", Counts},
	{Name, php, "++goods.id=7", "7", Counts},
	{Name, []Reader{PHPRequest}, "+goods_id=7", "7", Counts},
	{Name, php, "goods_id%00x=7", "7", Counts},
	{Name, []Reader{PHPRequest, Rack, QS}, "goods_id[]=7", "[7]", Ambiguous},
	{Name, []Reader{PHPRequest, Rack, QS}, "goods_id%5B%5D=7", "[7]", Ambiguous},
	{Name, []Reader{PHPRequest, Rack, QS}, "goods_id[a]=7", "{a:7}", Ambiguous},
	{Name, php, "goods.id[]=7", "[7]", Ambiguous},
	{Name, []Reader{QS}, "[goods_id]=7", "7", Ambiguous},
	{Name, []Reader{QS}, "goods_id.a=7", "{a:7}", Ambiguous},
	{Name, []Reader{Netty}, "=goods_id=7", "7", Counts},
	{Name, []Reader{Netty}, "==goods_id=7", "7", Counts},
	{Name, []Reader{GoFrame}, "goodsid=7", "7", Counts},
	{Name, []Reader{GoFrame}, "GoodsId=7", "7", Counts},
	{Name, []Reader{GoFrame}, "'goods_id'=7", "7", Counts},
	{Name, []Reader{GoFrame}, "x%3D1%26goods_id=7", "7", Ambiguous},
	{Name, []Reader{PHPRequest, Rack, QS, Servlet, GoForm, WSGI}, "goods_ids=7", "", LiteralOnly},
	{Name, []Reader{PHPRequest, Rack, QS, Servlet, GoForm, WSGI}, "goods[id]=7", "", LiteralOnly},

	// PHP folds names of cookies too, and the first one stays. PHP before 7.4.11 and Rack before 2.2.3 decode names.
	{CookieName, php, "goods.id=7", "7", Counts},
	{CookieName, php, "goods id=7", "7", Counts},
	{CookieName, php, "goods[id=7", "7", Counts},
	{CookieName, php, "goods_id[]=7", "[7]", Ambiguous},
	{CookieName, []Reader{Rack}, "goods%5fid=7", "7", Counts},
	{CookieName, []Reader{Rack}, "x=1,goods_id=7", "7", Counts}, // RFC 2965, section 4.1: a comma also parts cookies

	// A name in the query and in a form: each has readers that prefer it.
	{Place, []Reader{PHPRequest, Rack, GoForm}, "goods_id=1\ngoods_id=7", "7", Ambiguous},
	{Place, []Reader{Servlet, WSGI}, "goods_id=7\ngoods_id=1", "7", Ambiguous},
	{Place, php, "goods_id=1\ngoods.id=7", "7", Ambiguous},
	{Place, []Reader{PHPRequest, Rack, Servlet, GoForm, WSGI}, "goods_id=7\ngoods_id=7", "7", LiteralOnly},
	// Fastjson fills a bean by names without letter case, "_" and "-".
	{JSONName, []Reader{Fastjson}, `{"goods_id":"1","goodsId":"7"}`, "7", Ambiguous},
	{JSONName, []Reader{Fastjson}, `{"goods_id":"1","goods-id":"7"}`, "7", Ambiguous},
	{JSONName, []Reader{Fastjson}, `{"goods_id":"1","_GoodsID":"7"}`, "7", Ambiguous},
	{JSONName, []Reader{GoFrame}, `{"goods_id":"1","goods.id":"7"}`, "7", Ambiguous},
	{JSONName, []Reader{Fastjson}, `{"goods_id":"7","goodsId":"7"}`, "7", LiteralOnly},
	{JSONName, []Reader{Fastjson}, `{"goods_id":"7","goods_ids":"1"}`, "7", LiteralOnly},
	// The outer names of JSON are among those of the query, too.
	{JSONPlace, []Reader{Laravel}, "goods_id=1\n{\"goods_id\":\"7\"}", "7", Ambiguous},
	{JSONPlace, []Reader{Laravel}, "goods_id=1\n{\"goods\\u005fid\":7}", "7", Ambiguous},
	{JSONPlace, []Reader{RailsParams}, "goods_id=7\n{\"goods_id\":\"1\"}", "7", Ambiguous},
	{JSONPlace, []Reader{Laravel, RailsParams}, "goods_id=7\n{\"goods_id\":7}", "7", LiteralOnly},
	{JSONPlace, []Reader{Laravel, RailsParams}, "goods_id=7\n{\"goods_id\":7,\"a\":{\"goods_id\":1}}", "7", LiteralOnly},
	// PHP's arrays have no other keys than numbers and texts.
	{Index, php, `{"items":{"0":{"goods_id":"7"}}}`, "7", Invalid},

	{Number, []Reader{Database}, "07", "7", Invalid},
	{Number, []Reader{Database}, "+7", "7", Invalid},
	{Number, []Reader{Database}, "7.0", "7", Invalid},
	{Number, []Reader{Database}, "7e0", "7", Invalid},
	{Number, []Reader{Database}, "７", "7", Invalid},
	{Number, []Reader{Database}, "0", "0", LiteralOnly},
	{Number, []Reader{Database}, "9223372036854775807", "9223372036854775807", LiteralOnly},
}
