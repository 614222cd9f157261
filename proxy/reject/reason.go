// Package reject answers requests that are not forwarded, or to which the upstream has not responded. It promises one
// list of reasons and one table of what each is answered with: the response, the access log and the metric label of a
// rejection come from here and cannot disagree.
// It also promises that no value of a request leaves its place in an answer, and that an answer allocates nothing.
// It does not decide whether a request is rejected: package proxy does.
package reject

import "regexp"

// Reason says why a request was rejected. Its String is the name in answers, logs and metrics.
type Reason uint8

// The reasons, in the order of the checks: those of the connection first, those of the upstream last. Each has a row in
// the table below, which says what it means.
const (
	Admitted Reason = iota // not rejected
	Malformed
	ConnOpen
	IPConns
	DeniedIP
	ConnRate
	NoRoute
	Loop
	TooLarge
	TooSlow
	Overloaded
	BadRequest
	Ambiguous
	Unidentified
	Denied
	Token
	Room
	NotStarted
	Ended
	Paused
	SoldOut
	Undecided
	UnknownSKU
	Rate
	InFlight
	Window
	Concurrency
	QueueTimeout
	ClientGone
	Confirmed
	Duplicate
	InProgress
	KeyReused
	Released
	StockError
	UpstreamBusy
	NoUpstream
	UpstreamError
	UpstreamTimeout
	Internal
	NumReasons
)

// rejection is one row of the table.
type rejection struct {
	name   string
	class  Class
	status int // overrides the class's status; 0 = the class decides
	flags  flags
	en, zh string // title

	meaning string // when it is given, for docs/http.md and `sluice why`: Markdown in one line
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

// The table. `make reference` writes it into docs/http.md.
var table = [NumReasons]rejection{
	Admitted: {name: "admitted"},
	Malformed: {"malformed", BadRequestClass, 400, closes, "Invalid request", "请求格式错误",
		"not valid HTTP/1.1: [What is rejected on the wire](#what-is-rejected-on-the-wire). " +
			"The broken rule may have a status of its own"},
	ConnOpen: {"conn_open", Busy, 0, closes, "Too many connections", "当前连接过多",
		"`limits.connection.max_connections` connections are open"},
	IPConns: {"ip_conns", Busy, 0, closes, "Too many connections from your address", "您的网络地址连接过多",
		"`limits.connection.max_connections_per_ip` connections of this client are open"},
	DeniedIP: {"denied_ip", DeniedClass, 0, 0, "Access denied", "访问被拒绝",
		"the client is in `limits.deny`"},
	ConnRate: {"conn_rate", Busy, 0, 0, "Too many requests on this connection", "请求过于频繁",
		"`limits.connection.request_rate` of this connection"},
	NoRoute: {"no_route", BadRequestClass, 404, 0, "Not found", "页面不存在",
		"no `[[route]]` matches"},
	Loop: {"loop", Unavailable, 508, closes, "The shop cannot be reached right now", "商城暂时无法访问",
		"the request has come through this instance before, by its `Via`: `upstream.targets` lead back to it"},
	TooLarge: {"too_large", BadRequestClass, 413, 0, "Request body too large", "请求内容过大",
		"the body is over `server.max_body_size`, on any route but `pass`; or an order that waits is over `queue.max_order`"},
	TooSlow: {"too_slow", BadRequestClass, 408, closes, "Request took too long to arrive", "请求发送超时",
		"the body did not come within `server.read_timeout`"},
	Overloaded: {"overloaded", Unavailable, 0, 0, "The shop is very busy", "活动太火爆了",
		"the bodies of other requests have used up this one's share of `server.body_memory`: " +
			"[Memory for request bodies](limits.md#memory-for-request-bodies); or a waiting room cannot reach Redis"},
	BadRequest: {"bad_request", BadRequestClass, 0, 0, "The request is incomplete or invalid", "请求信息不完整或有误",
		"SKU or quantity is missing or invalid, or the user is invalid; the [cause](#causes) says which"},
	Ambiguous: {"ambiguous", BadRequestClass, 0, 0, "The request is ambiguous", "请求内容有歧义",
		"Sluice and the upstream could read the request differently: " +
			"the detail says [where](#when-a-request-is-ambiguous), and docs/http.md, [Causes](#causes), what to change; " +
			"where query and body differ, the client sends the value once, or the route has `sources = \"one\"`"},
	Unidentified: {"unidentified", UnidentifiedClass, 0, 0, "Please sign in first", "请先登录",
		"the request, of an order or at a waiting room, names no user; or its proof (`$jwt_x`, `$signed_x`) is not " +
			"valid, or it lacks a value that `route.require` asks for: see [security.md](security.md)"},
	Denied: {"denied", DeniedClass, 0, 0, "You cannot take part in this sale", "您不符合本次活动的参与条件",
		"a value does not meet a condition of `route.require`; the [cause](#causes) says which: " +
			"[security.md](security.md#conditions-require)"},
	Token: {"token", DeniedClass, 0, 0, "Please reload the item's page and order from there", "请重新打开商品页面后再下单",
		"`order_token`: the token is missing, or of another user, SKU or time"},
	Room: {"room", RoomClass, 0, 0, "Please wait in the waiting room", "请先排队等候",
		"`route.room`: the order has no good pass of its waiting room; the [cause](#causes) says why: " +
			"[waiting-room.md](waiting-room.md)"},
	NotStarted: {"not_started", NotStartedClass, 0, 0, "The sale has not started", "活动尚未开始",
		"the sale, or on `reserve` the ledger, opens later: [sales.md](sales.md)"},
	Ended: {"ended", EndedClass, 0, 0, "The sale is over", "活动已结束",
		"the sale is over, or on `reserve` the ledger closed for good"},
	Paused: {"paused", PausedClass, 0, 0, "The sale is paused", "活动暂停中",
		"the layout's status, or an operator, says that the SKU is not on sale; or the clocks are too far " +
			"apart to start a sale"},
	SoldOut: {"sold_out", SoldOutClass, 0, 0, "Sold out", "已售罄",
		"no unit is left; or the upstream has said so, by `stock.sold_out_on` or `Sluice-Order: sold-out`"},
	Undecided: {"undecided", Busy, 0, 0, "All units are held; some may become available", "剩余商品都在其他顾客的订单中，可能还有机会",
		"`reserve`: too few units are free, but enough of them are held: they may come back"},
	UnknownSKU: {"unknown_sku", UnknownSKUClass, 0, 0, "This item is not part of the sale", "该商品未参加本次活动",
		"the SKU has no stock key, or no ledger"},
	Rate: {"rate", Busy, 0, 0, "Too many requests", "请求过于频繁",
		"a `[[limits.rate]]`: see [limits.md](limits.md), or joins of one user of a waiting room"},
	InFlight: {"in_flight", Busy, 0, 0, "Your earlier requests are still being processed", "您之前的请求仍在处理中",
		"a `[[limits.in_flight]]`: as many requests of the key as it allows are in the upstream"},
	Window: {"window", Busy, 0, 0, "The shop is very busy", "活动太火爆了",
		"the window, and those it may be carried to, are full"},
	Concurrency: {"concurrency", Busy, 0, 0, "The shop is very busy", "活动太火爆了",
		"the concurrency limit and its queue are full; or `stock.max_in_flight_per_unit` is reached; `reserve`: too many " +
			"orders wait for the ledger, or a SKU is sold out and it cannot be looked up now whether this user " +
			"or key has won it, or two orders of one user were reserved at once under a `[[sale]] max_per_user`, or a " +
			"user without a key has more earlier orders than one request goes through (64), and the next one goes on there"},
	QueueTimeout: {"queue_timeout", Busy, 0, 0, "The shop is very busy", "排队超时",
		"no slot within `limits.concurrency.queue_timeout`"},
	ClientGone: {"client_gone", Busy, 0, closes, "The client closed the connection", "客户端已断开连接",
		"the client closed its connection before its turn for a window, a slot or a connection to the upstream " +
			"came: no client reads this, " +
			"and the upstream gets nothing of the request"},
	Confirmed: {"confirmed", ConfirmedClass, 0, ordered, "Your order is placed", "您的订单已提交成功",
		"this very order, by its `Idempotency-Key`, was placed before; it is not sent again, and its outcome " +
			"is repeated"},
	Duplicate: {"duplicate", DuplicateClass, 0, ordered, "You have already bought this item", "您已购买过该商品",
		"`reserve`: the user has as many units as `stock.reserve.max_per_user` allows, or the `max_per_user` of a " +
			"`[[sale]]` for all its SKUs; `check`: the user is in " +
			"the upstream's set of buyers (`stock.layout.users_key`)"},
	InProgress: {"in_progress", DuplicateClass, 0, ordered, "Your order is being processed", "您的订单正在处理中",
		"`reserve`: the same order is under way, or its outcome is not known yet; `Link: <…>; rel=\"status\"` " +
			"names where to ask"},
	KeyReused: {"key_reused", DuplicateClass, 422, earlier, "This order key was used for another order", "该订单编号已用于其他订单",
		"`reserve`: the `Idempotency-Key` was used for another user, quantity or cart"},
	Released: {"released", DuplicateClass, 0, hasOrder, "This order was cancelled", "该订单已取消",
		"`reserve`: the order by this `Idempotency-Key` was released before, by the upstream's response or since " +
			"it never arrived (`no_upstream`), or refunded; order again with another key"},
	StockError: {"stock_error", Unavailable, 0, hasOrder, "Availability cannot be checked right now", "暂时无法查询库存",
		"the stock cannot be known, and `stock.on_error` does not allow the request; or the ledger may have " +
			"lost some of its history and is frozen"},
	UpstreamBusy: {"upstream_busy", Unavailable, 0, 0, "The shop is very busy", "商城繁忙",
		"all connections to the upstream are in use, and none came free within `upstream.queue_timeout`, or " +
			"10,000 requests wait already; nothing was sent, and on `reserve` nothing was reserved; or the process was " +
			"stopped for longer than the units of the order are held: nothing was sent, and they are released"},
	NoUpstream: {"no_upstream", Unavailable, 0, 0, "The shop cannot be reached right now", "商城暂时无法访问",
		"no target could be reached: nothing was sent"},
	UpstreamError: {"upstream_error", upstreamClass, 502, unknown, "The shop did not respond properly", "商城响应异常",
		"sent, and no whole, well-formed response came: **the outcome is unknown**"},
	UpstreamTimeout: {"upstream_timeout", upstreamClass, 504, unknown, "The shop did not respond in time", "商城响应超时",
		"sent, and no response in time: **the outcome is unknown**"},
	Internal: {"internal", Unavailable, 500, closes | maybePlaced, "Internal error", "服务内部错误",
		"a panic in Sluice was caught"},
}

// String is the name in answers, logs and metrics.
func (r Reason) String() string { return table[r].name }

// MeaningOf says in plain text when the reason of that name is given; "" where it is not known, or no rejection.
func MeaningOf(name string) string {
	for _, row := range table {
		if row.name == name {
			return markup.ReplaceAllString(row.meaning, "$1")
		}
	}
	return ""
}

// markup is what Markdown adds to a text: addresses of links, and emphasis.
var markup = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)|\*\*`)

// Class is the group of reasons whose answer the configuration sets together.
func (r Reason) Class() Class { return table[r].class }

// ClosesConnection reports that the connection cannot be used after the answer. A request with such a reason cannot be
// forwarded in observe mode either.
func (r Reason) ClosesConnection() bool { return table[r].flags&closes != 0 }

// MayHaveOrder reports a rejection that may concern an order whose state the client can ask for.
func (r Reason) MayHaveOrder() bool { return table[r].flags&hasOrder != 0 }

// OutcomeUnknown reports that the request was sent and that no response tells whether the upstream placed an order.
func (r Reason) OutcomeUnknown() bool { return table[r].class == upstreamClass }

// Transient reports that the same request may be admitted a moment later, and that this one has certainly placed no
// order: a client does well to send it again, after Retry-After.
func (r Reason) Transient() bool {
	switch table[r].class {
	case Busy, PausedClass, Unavailable:
		return r != Admitted && !r.mayHavePlaced()
	}
	return false
}

// Reasons are all reasons for which Sluice rejects, in their order.
func Reasons() (all []Reason) {
	for r := Admitted + 1; r < NumReasons; r++ {
		all = append(all, r)
	}
	return all
}

// mayHavePlaced reports that this very request may have placed an order.
func (r Reason) mayHavePlaced() bool { return table[r].flags&maybePlaced != 0 }

// orderMessage is what the reason alone tells about the order. "This request placed no order, and you were not charged"
// is what a rejected client wants to know, and must not read unless it is true.
func (r Reason) orderMessage() message {
	switch {
	case r.mayHavePlaced():
		return unknownYet
	case table[r].flags&earlier != 0:
		return oneOnly
	}
	return notOrdered
}
