package config

var contradictions = []mistake{
	{`[upstream]
targets = ["http://shop"]
timeout = "3s"`,
		`:3: upstream.timeout: 3s is below upstream.response_header_timeout (5s); raise it, or lower the other`},
	{`[[decide]]
listen = "127.0.0.1:8092"
[[route]]
name = "a"
match = "/"
gate = "check"
sku = "$json_sku"`,
		`:7: route[1].sku: "$json_sku" stands in the body, which a [[decide]] listener is not sent; let clients send it in ` +
			`the path, a header or a cookie, like $path_x`},
	{`[[decide]]
listen = "127.0.0.1:8092"
[[route]]
name = "a"
match = "/"
gate = "check"
sources = "all"
sku = "$arg_sku"`,
		`:7: route[1].sources: "all" compares the query with the body, which a [[decide]] listener is not sent; write ` +
			`sources = "one" if the shop reads the query alone, or let clients send it in the path, a header or a cookie, ` +
			`like $path_x`},
	{`name = "shop"
[[decide]]
listen = "127.0.0.1:8092"
[[route]]
name = "a"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
[stock]
source = "redis"
[stock.reserve]
status_url = "http://shop/orders/{serial}"
on_not_found = "release_after_ttl"`,
		`:14: stock.reserve.on_not_found: "release_after_ttl" sells a unit again while a proxy that asks may still wait for ` +
			`the body of its order; write "release_after_deadline" if the shop compares Sluice-Deadline, or "keep"`},
	{`[[decide]]
listen = "127.0.0.1:8092"
[[limits.rate]]
name = "by-name"
key = "$form('user')"
burst = 5
rate = "1/s"`,
		`:5: limits.rate[1].key: "$form('user')" stands in the body, which a [[decide]] listener is not sent; count by ` +
			`another variable`},
	{`[limits.connection]
max_connections = 100`,
		`:2: limits.connection.max_connections: 100 is below limits.connection.max_connections_per_ip (200); raise it, or ` +
			`lower the other`},
	{`[limits.window]
max = 10
max_per_sku = 11`,
		`:3: limits.window.max_per_sku: 11 exceeds limits.window.max (10); lower it, or raise the other`},
	{`[limits.window]
max = 10`,
		`:2: limits.window.max: 10 is below limits.window.max_per_sku (20); raise it, or lower the other`},
	{`[stock.redis]
topology = "cluster"
replicas = ["10.0.0.2:6379"]`,
		`:3: stock.redis.replicas: are for a single Redis or sentinels: of a cluster the masters are read; drop them`},
	{`[stock]
source = "off"
[[route]]
name = "a"
match = "/"
gate = "check"
sku = "$arg_sku"`,
		`:6: route[1].gate: "check" asks for stock, but stock.source is "off"; write gate = "limit", or another source`},
	{`[stock]
on_error = "allow"
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$arg_sku"`,
		`:6: route[1].gate: "reserve" cannot be allowed without Redis, but stock.on_error is "allow"; write on_error = ` +
			`"reject", or gate = "check"`},
	{`[stock]
unknown_sku = "allow"
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$arg_sku"`,
		`:6: route[1].gate: "reserve" cannot take from a SKU that is not there, but stock.unknown_sku is "allow"; write ` +
			`unknown_sku = "reject", or gate = "check"`},
	{`[[route]]
name = "a"
match = "/"
gate = "check"
sku = "$arg_sku"
delivery = "queue"`,
		`:6: route[1].delivery: "queue" needs a unit for each order that waits, but gate is "check"; write gate = ` +
			`"reserve", or delivery = "direct"`},
	{`[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$json_a.*.sku"
quantity = "$json_a.*.qty"
user = "$cookie_uid"
delivery = "queue"`,
		`:5: route[1].sku: "$json_a.*.sku" takes orders over several SKUs: an order that waits is of one; write the SKU of ` +
			`one array element, like "$json_items.0.sku_id", or delivery = "direct"`},
	{`[[route]]
name = "a"
match = "/"
gate = "check"
sku = "$json_a.*.sku"
quantity = "$json_a.*.qty"`,
		`:5: route[1].sku: "$json_a.*.sku" takes orders over several SKUs: that is for gate "reserve" alone; write the SKU ` +
			`of one array element, like "$json_items.0.sku_id", or gate = "reserve"`},
	{`stock.reserve.status_url = "http://shop/orders/{serial}"
stock.reserve.on_not_found = "cancel_then_release"
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$json_a.*.sku"
quantity = "$json_a.*.qty"`,
		`:7: route[1].sku: "$json_a.*.sku" takes orders over several SKUs, but stock.reserve.status_url does not say which ` +
			`one it asks about: a client's key that names two carts could confirm units of an order that the shop does not ` +
			`have; write {sku} into it, like "http://shop/orders/{serial}?sku={sku}"`},
	{`mode = "observe"
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$arg_sku"
delivery = "queue"`,
		`:1: mode: "observe" forwards what would be rejected, but a route has delivery = "queue", whose orders are not ` +
			`forwarded; write delivery = "direct" while you observe`},
	{`[queue]
deliver_within = "20m"
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$arg_sku"
delivery = "queue"`,
		`:2: queue.deliver_within: an order may wait for 20m0s, and its last attempt lasts up to 4 times upstream.timeout ` +
			`(or queue.pull) and the grace, but stock.reserve.reservation_ttl is 15m0s; write reservation_ttl = "20m45s" or ` +
			`more, or a shorter deliver_within`},
	{`[stock.reserve]
confirm_on = []
[[route]]
name = "a"
match = "/"
gate = "reserve"
sku = "$arg_sku"
delivery = "queue"`,
		`:2: stock.reserve.confirm_on: is empty, so no answer confirms an order, and one that the shop has taken would be ` +
			`delivered again, but a route has delivery = "queue"; write the statuses that confirm, like ["2xx"], or ` +
			`delivery = "direct"`},
	{`[stock.redis]
topology = "sentinel"`,
		`:1: stock.redis.master_name: is missing: topology "sentinel" asks for a master by its name; write it`},
	{`[stock.redis]
topology = "single"
addresses = ["a:1", "b:1"]`,
		`:3: stock.redis.addresses: topology "single" has one address, not 2; write "sentinel" or "cluster", or drop the ` +
			`others`},
	{`[stock.redis]
topology = "single"
master_name = "m"`,
		`:3: stock.redis.master_name: means a sentinel, but topology is "single"; write topology = "sentinel", or drop it`},
	{`[stock.redis]
topology = "cluster"
db = 3`,
		`:3: stock.redis.db: 3: a cluster has only db 0; write 0`},
	{`[stock.layout]
status_key = "s:$sku"
status_field = "s"
status_open = []`,
		`:3: stock.layout.status_field: says where the status is, and so does status_key; drop one
:3: stock.layout.status_field: is a field of a hash, but type is "counter"; write status_key
:4: stock.layout.status_open: is empty: no SKU would ever be on sale; write the values that mean open`},
	{`[stock]
source = "redis"
[stock.layout]
status_key = "s:$sku"
status_closed = "1"
[stock.reserve]
write_back = true`,
		`:5: stock.layout.status_closed: "1" is in status_open, too; write the value that means that a sale is paused or ` +
			`over`},
	{`[stock.reserve]
confirm_on = ["2xx"]
release_on = ["4xx", "2xx", "6xx"]`,
		`:3: stock.reserve.release_on[3]: "6xx" is not a status; write it like "2xx" or "201"
:3: stock.reserve.release_on[2]: "2xx" is in confirm_on too: an answer is one or the other; drop it from one`},
	{`[server]
listen = [":8080", ":8091"]
[ops]
listen = ":8080"`,
		`:4: ops.listen: ":8080" stands at server.listen[1] too; change or drop one`},
	{`[limits.window]
scope = "fleet"`,
		`:2: limits.window.scope: "fleet" counts the instances in Redis, but stock.source is "memory"; write source = ` +
			`"redis", or fleet.instances`},
	{`[server]
proxy_protocol = true`,
		`:2: server.proxy_protocol: no proxy is trusted to send the header; name the proxies in server.trusted_proxies`},
	{`[server.tls]
cert_file = "a"`,
		`:1: server.tls.key_file: is empty; write a value`},
}

var notAvailable = []mistake{
	{`[auth]
jwt_algorithm = "none"
[[limits.rate]]
name = "a"
key = "$signed_uid"
rate = "1/s"
burst = 1
[[route]]
name = "a"
match = "/a/{sku}"
gate = "limit"
user = "$signed_uid"
order_token = true`,
		`:1: auth.jwt_key_file: is missing: none verifies with a key; write where it is
:2: auth.jwt_algorithm: "none" is not known; write "", "HS256", "RS256" or "EdDSA"
:5: limits.rate[1].key: $signed_uid is of a cookie that is not verified; write auth.cookie_key_file
:12: route[1].user: $signed_uid is of a cookie that is not verified; write auth.cookie_key_file
:13: route[1].order_token: needs a key that all instances share; write auth.order_token_key_file
:13: route[1].order_token: is of a user and a SKU; write both, and another gate than "pass"`},
	{`[auth]
jwt_key_file = "testdata/none"
[[route]]
name = "a"
match = "/"
gate = "limit"
user = "$jwt_sub"`,
		`:1: auth.jwt_algorithm: is missing: the key does not say for which it is; write "HS256", "RS256" or "EdDSA"
:2: auth.jwt_key_file: open testdata/none: no such file or directory; write the path of a file that sluice may read
:7: route[1].user: $jwt_sub is of a token that is not verified; write auth.jwt_algorithm and auth.jwt_key_file`},
	{`[[limits.rate]]
name = "a"
rate = "1/s"
burst = 1
overrides = { "10.0.0.0/8" = "of", "::/0" = "5", x = "off" }`,
		`:5: limits.rate[1].overrides."10.0.0.0/8": "of" is not a rate; write it like "20/s", "600/m", "100/h" or "5/d", or "off"
:5: limits.rate[1].overrides."::/0": "5" has no unit; write "5/s" or "5/m", or "off"`},
	{`[[limits.rate]]
name = "a"
rate = "1/s"
burst = 1
[[limits.rate]]
name = "a"
key = "all"
routes = ["b"]`,
		`:5: limits.rate[2].rate: is missing; write it like "20/s"
:5: limits.rate[2].burst: is missing or 0; write how many requests of one key may come at once, like 20
:6: limits.rate[2].name: "a" stands at limits.rate[1].name too; change or drop one
:8: limits.rate[2].routes[1]: "b" is no route; write the name of a [[route]]`},
	{`[stock]
sold_out_on = { header = "X Stock: 0" }
detail = "all"
low_stock = -1`,
		`:2: stock.sold_out_on.header: "X Stock" is not a header name; write letters, digits and -
:3: stock.detail: "all" is not known; write "level", "exact" or "none"
:4: stock.low_stock: -1 must be from 0 to 1073741824`},
	{`[stock]
sold_out_on = { json = "code" }`,
		`:2: stock.sold_out_on: json and values belong together; write both or neither`},
	{`[stock.reserve]
max_per_user = 2
reservation_ttl = "1m"
confirm_json = { path = "code", values = [0, "ok", true] }
write_back = true`,
		`:5: stock.reserve.write_back: writes into the shop's Redis, but stock.source is "memory"; write "redis", or drop ` +
			`this`},
	{`[stock.reserve]
status_url = "http://shop/{id}"
on_not_found = "wall"`,
		`:2: stock.reserve.status_url: "http://shop/{id}" is not a URL with {serial}; write it like ` +
			`"http://127.0.0.1:9000/orders/by-serial/{serial}"
:3: stock.reserve.on_not_found: "wall" is not known; write "keep", "release_after_deadline", "cancel_then_release" ` +
			`or "release_after_ttl"`},
	{`[[sale]]
name = "x"
skus = ["1"]
starts = 2026-11-11T00:00:00+08:00
ends = 2026-11-11T00:00:00+08:00
stock = { 2 = 1 }`,
		`:1: sale[1]: no route with a limit knows what is bought; write sku into a [[route]] with gate "limit", "check" or ` +
			`"reserve"
:5: sale[1].ends: 2026-11-11T00:00:00+08:00 is not after starts; write a later time
:6: sale[1].stock.2: "2" is not in skus; add it there, or drop it here
:6: sale[1].stock: is written into ledgers and the keys of stock.layout, but no route reads either that can be ` +
			`written; drop it, and let the shop write its own keys`},
	{`[responses]
template_dir = "t"
ratelimit_headers = true`,
		`:2: responses.template_dir: open t: no such file or directory; write the path of a folder that sluice may read`},
	{`[admin]
viewer_token_file = "/none/of/these"`,
		`:2: admin.viewer_token_file: open /none/of/these: no such file or directory; write the path of a file that sluice ` +
			`may read
:2: admin.viewer_token_file: belongs to token_file, without which no token is asked for; write that too, or drop this`},
	{`[limits]
bypass = ["file:/none/of/these"]
deny = ["file:deny.txt", "everybody", "192.0.2.1"]`,
		`:2: limits.bypass[1]: open /none/of/these: no such file or directory; write the path of a file that sluice may read
:3: limits.deny[1]: "file:deny.txt" has no absolute path; write it like "file:/etc/sluice/deny.txt"
:3: limits.deny[2]: "everybody" is not a CIDR; write it like "10.0.0.0/8"
:3: limits.deny[3]: "192.0.2.1" is an address, not a CIDR; write "192.0.2.1/32"`},
	{`[limits.connection]
max_requests = -1
[[limits.rate]]
name = "per user"
rate = "1/s"
burst = 1`,
		`:2: limits.connection.max_requests: -1 must be from 0 to 1073741824
:4: limits.rate[1].name: "per user" stands in metrics and headers; write letters, digits and . _ -`},
	{`[[sale]]
name = "x"
skus = ["{1}", "2", "2"]
[[sale]]
name = "x"
starts = 2026-11-11T00:00:00Z
before_start = "open"
[[route]]
name = "a"
match = "/"
gate = "limit"
sku = "$arg_sku"`,
		`:1: sale[1].starts: is missing; write it like 2026-11-11T00:00:00+08:00
:3: sale[1].skus[1]: "{1}" is not a SKU; write one without braces and blanks
:3: sale[1].skus[3]: "2" stands at sale[1].skus[2] too; change or drop one
:4: sale[2].skus: is missing; write what is sold, like ["1001"]
:4: sale[2].ends: is missing; write it like 2026-11-11T00:00:00+08:00
:5: sale[2].name: "x" stands at sale[1].name too; change or drop one
:7: sale[2].before_start: "open" is not known; write "reject" or "pass"`},
	{`[stock]
sold_out_on = {}
[stock.layout]
type = "counter_users"`,
		`:2: stock.sold_out_on: names no answer; write status, header, or json and values
:3: stock.layout.users_key: is empty; write a value`},
	{`[stock.layout]
type = "hash_left"
left_field = ""`,
		`:3: stock.layout.left_field: is empty; write a value`},
	{`[stock.layout]
type = "script"`,
		`:1: stock.layout.script_file: is empty; write a value`},
	{`[stock.layout]
type = "script"
script_file = "testdata/none"`,
		`:3: stock.layout.script_file: open testdata/none: no such file or directory; write the path of a file that sluice ` +
			`may read`},
	{`[stock.layout]
type = "script"
script_file = "testdata/empty"`,
		`:3: stock.layout.script_file: testdata/empty is empty; write the script into it`},
	{`[stock.layout]
type = "script"
script_file = "testdata/marked"`,
		`:3: stock.layout.script_file: testdata/marked begins with a byte order mark; save it as UTF-8 without one`},
	{`admin.token_file = "testdata/marked"`,
		`:1: admin.token_file: testdata/marked begins with a byte order mark; save it as UTF-8 without one`},
	{`admin.token_file = "testdata/utf16"`,
		`:1: admin.token_file: testdata/utf16 begins with a byte order mark; save it as UTF-8 without one`},
	{`[stock.layout]
script_file = "testdata/two_lines"`,
		`:2: stock.layout.script_file: is read with type "script", but type is "counter"; write that, or drop this`},
	{`[stock]
source = "redis"
[stock.layout]
users_key = "users:$sku_1:$sku_4"
[[route]]
name = "a"
match = "/a/{sku}"
gate = "check"
sku = "$path_sku"`,
		`:4: stock.layout.users_key: $sku_4 is not known; did you mean $sku_1?
:5: route[1].user: is missing: stock.layout.users_key knows who has bought; write where the user is found, like ` +
			`"$cookie_uid"`},
	{`[stock.reserve]
confirm_json = { path = "code" }`,
		`:2: stock.reserve.confirm_json: path and values belong together; write both`},
	{`[access_log]
output = "file:"`,
		`:2: access_log.output: "file:" names no file; write it like "file:/var/log/sluice/access.log"`},
	{`[stock.redis]
addresses = ["a:1", "a:1"]`,
		`:2: stock.redis.addresses[2]: "a:1" stands at stock.redis.addresses[1] too; change or drop one`},
}
