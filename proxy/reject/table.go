package reject

import "time"

// Class is a group of reasons that are answered alike: [responses.<class>] of the configuration.
type Class uint8

// The classes of the configuration.
const (
	Busy Class = iota
	SoldOutClass
	NotStartedClass
	EndedClass
	PausedClass
	ConfirmedClass
	DuplicateClass
	DeniedClass
	UnidentifiedClass
	UnknownSKUClass
	BadRequestClass
	Unavailable
	upstreamClass // a fault of the upstream: not configurable, the outcome of an order is unknown
	numClasses
)

var classNames = [numClasses]string{
	"busy", "sold_out", "not_started", "ended", "paused", "confirmed", "duplicate", "denied", "unidentified",
	"unknown_sku", "bad_request", "unavailable", "upstream",
}

// String is the name in the configuration and of the files of own pages.
func (c Class) String() string { return classNames[c] }

// Answer is how a class is answered.
type Answer struct {
	Status     int           // 0 = 503
	Code       int           // $code of the envelope; 0 = 100 × Status
	RetryAfter time.Duration // 0 = no Retry-After
	Redirect   string        // path or URL; clients that want a page get 303 to it; "" = they get a page
}

// rejection is one row of the table.
type rejection struct {
	name   string
	class  Class
	status int // overrides the class's status; 0 = the class decides
	flags  flags
	en, zh string // title
}

type flags uint8

const (
	closes      flags = 1 << iota // the connection cannot be used any further
	hasOrder                      // the client can ask for the state of an order
	earlier                       // an earlier request placed an order
	maybePlaced                   // this request may have placed an order

	ordered = hasOrder | earlier
	unknown = hasOrder | maybePlaced
)

// The table (docs/http.md shows it).
var table = [NumReasons]rejection{
	Admitted:     {name: "admitted"},
	Malformed:    {"malformed", BadRequestClass, 400, closes, "Malformed request", "请求格式错误"},
	ConnOpen:     {"conn_open", Busy, 0, closes, "Too many connections", "当前连接过多"},
	IPConns:      {"ip_conns", Busy, 0, closes, "Too many connections from your address", "您的网络地址连接过多"},
	ConnRate:     {"conn_rate", Busy, 0, 0, "Too many requests on this connection", "请求过于频繁"},
	DeniedIP:     {"denied_ip", DeniedClass, 0, 0, "Access denied", "访问被拒绝"},
	NoRoute:      {"no_route", BadRequestClass, 404, 0, "Not found", "页面不存在"},
	TooLarge:     {"too_large", BadRequestClass, 413, 0, "Request body too large", "请求内容过大"},
	TooSlow:      {"too_slow", BadRequestClass, 408, closes, "Request took too long to arrive", "请求发送超时"},
	BadRequest:   {"bad_request", BadRequestClass, 0, 0, "The request lacks what it needs to be served", "请求缺少必要的信息"},
	Ambiguous:    {"ambiguous", BadRequestClass, 0, 0, "The request can be read in more than one way", "请求内容有歧义"},
	Unidentified: {"unidentified", UnidentifiedClass, 0, 0, "Please sign in", "请先登录"},
	Token:        {"token", DeniedClass, 0, 0, "Please open the item's page again, and order from there", "请重新打开商品页面下单"},
	NotStarted:   {"not_started", NotStartedClass, 0, 0, "The sale has not started", "活动尚未开始"},
	Ended:        {"ended", EndedClass, 0, 0, "The sale is over", "活动已结束"},
	Paused:       {"paused", PausedClass, 0, 0, "The sale is paused", "活动暂停中"},
	SoldOut:      {"sold_out", SoldOutClass, 0, 0, "Sold out", "已售罄"},
	UnknownSKU:   {"unknown_sku", UnknownSKUClass, 0, 0, "No such item on sale", "没有这件商品"},
	Rate:         {"rate", Busy, 0, 0, "Too many requests", "请求过于频繁"},
	Window:       {"window", Busy, 0, 0, "Very busy, try again in a moment", "活动太火爆，请稍后再试"},
	Concurrency:  {"concurrency", Busy, 0, 0, "Very busy, try again in a moment", "活动太火爆，请稍后再试"},
	QueueTimeout: {"queue_timeout", Busy, 0, 0, "Very busy, try again in a moment", "排队超时，请稍后再试"},
	ClientGone:   {"client_gone", Busy, 0, closes, "You left before your turn came", "您在轮到之前已离开"},
	Confirmed:    {"confirmed", ConfirmedClass, 0, ordered, "Your order is placed", "您的订单已成功"},
	Duplicate:    {"duplicate", DuplicateClass, 0, ordered, "You have bought this already", "您已经购买过了"},
	InProgress:   {"in_progress", DuplicateClass, 0, ordered, "Your order is being processed", "您的订单正在处理"},
	KeyReused: {"key_reused", DuplicateClass, 422, earlier,
		"This order key was used for another order", "该订单编号已用于其他订单"},
	Released:        {"released", DuplicateClass, 0, hasOrder, "This order was cancelled", "该订单已取消"},
	StockError:      {"stock_error", Unavailable, 0, hasOrder, "The stock cannot be told right now", "暂时无法查询库存"},
	NoUpstream:      {"no_upstream", Unavailable, 0, 0, "The shop cannot be reached right now", "商店暂时无法访问"},
	ShuttingDown:    {"shutting_down", Unavailable, 0, closes, "This server is being restarted", "服务正在重启"},
	UpstreamError:   {"upstream_error", upstreamClass, 502, unknown, "The shop gave no usable answer", "商店没有给出有效的答复"},
	UpstreamTimeout: {"upstream_timeout", upstreamClass, 504, unknown, "The shop did not answer in time", "商店未能及时答复"},
	Internal:        {"internal", Unavailable, 500, closes | maybePlaced, "An error of the gate", "网关内部错误"},
}
