package config

// notOff ends what is said of a 0 where none may stand.
const notOff = `; 0 is not "off": leave the key out for its default`

var valueMistakes = []mistake{
	{`mode = "obsreve"`, `:1: mode: "obsreve" is not known; write "enforce" or "observe"`},
	{`[server]
listen = []`,
		`:2: server.listen: is empty; write where shoppers come in, like [":8080"]`},
	{`[server]
listen = ["8080", ":80800", "unix:x"]`,
		`:2: server.listen[1]: "8080" is not an address; write it like ":8080", "127.0.0.1:8080" or "unix:/run/sluice.sock"
:2: server.listen[2]: ":80800" is not an address; write it like ":8080", "127.0.0.1:8080" or "unix:/run/sluice.sock"
:2: server.listen[3]: "unix:x" has no absolute path; write it like "unix:/run/sluice.sock"`},
	{`[server]
listen = ["unix:/run/s.sock"]
socket_group = "www data"`,
		`:3: server.socket_group: "www data" is not the name of a group; write it like "www-data"`},
	{`[server]
socket_group = "www-data"`,
		`:2: server.socket_group: no address of server.listen is a unix socket; add one like ` +
			`"unix:/run/sluice/sluice.sock", or remove socket_group`},
	{`[server]
trusted_proxies = ["10.0.0.1", "10.0.0.1/8", "privat", "0.0.0.0/0", "private"]`,
		`:2: server.trusted_proxies[1]: "10.0.0.1" is an address, not a CIDR; write "10.0.0.1/32"
:2: server.trusted_proxies[2]: "10.0.0.1/8" has bits beyond its length; write "10.0.0.0/8"
:2: server.trusted_proxies[3]: "privat" is not a CIDR; write it like "10.0.0.0/8"
:2: server.trusted_proxies[4]: "0.0.0.0/0" lets every client choose its own address; write the CIDRs of the proxies`},
	{`[server]
client_ip_header = "X Forwarded"
request_id_header = ""`,
		`:2: server.client_ip_header: "X Forwarded" is not a header name; write letters, digits and -
:3: server.request_id_header: is empty; write a value`},
	{`[server]
client_ip_header = "forwarded"`,
		`:2: server.client_ip_header: "forwarded" is a header of RFC 7239, which is not read; write one that holds ` +
			`addresses alone, like "X-Forwarded-For"`},
	{`[server]
read_timeout = "0s"
shutdown_delay = "-1s"`,
		`:2: server.read_timeout: 0s must be above 0s` + notOff + `
:3: server.shutdown_delay: -1s must not be below 0s`},
	{`[server]
max_header_size = "1B"`,
		`:2: server.max_header_size: 1B must be from 1KiB to 1MiB`},
	{`[server]
body_memory = "32KiB"`,
		`:2: server.body_memory: 32KiB must be from 64KiB to 1024GiB
:2: server.body_memory: 32KiB is below twice server.max_body_size (256KiB); raise it to 512KiB, or lower the other`},
	{`[server]
max_body_size = "100MiB"`,
		`:2: server.max_body_size: 100MiB exceeds half of server.body_memory (64MiB); lower it, or set server.body_memory ` +
			`to 200MiB`},
	{`[upstream]
policy = "fastest"`,
		`:1: upstream.targets: is missing; write where the shop is, like ["http://127.0.0.1:9000"]
:2: upstream.policy: "fastest" is not known; write "least_conn", "round_robin", "random", "first" or "client_hash"`},
	{`[upstream]
targets = []`,
		`:2: upstream.targets: is missing; write where the shop is, like ["http://127.0.0.1:9000"]`},
	{`[upstream]
targets = ["127.0.0.1:9000", "http://shop/api", "http://shop:99999", "unix:shop", "ftp://shop"]`,
		`:2: upstream.targets[1]: "127.0.0.1:9000" is not a target; write it like "http://127.0.0.1:9000", ` +
			`"https://shop.internal" or "unix:/run/shop.sock"
:2: upstream.targets[2]: "http://shop/api" has more than a scheme, a host and a port: Sluice forwards the path of ` +
			`each request; write "http://shop"
:2: upstream.targets[3]: "http://shop:99999" is not a target; write it like "http://127.0.0.1:9000", ` +
			`"https://shop.internal" or "unix:/run/shop.sock"
:2: upstream.targets[4]: "unix:shop" has no absolute path; write it like "unix:/run/shop.sock"
:2: upstream.targets[5]: "ftp://shop" is not a target; write it like "http://127.0.0.1:9000", ` +
			`"https://shop.internal" or "unix:/run/shop.sock"`},
	{`[upstream]
targets = [
"http://shop",
"http://shop" ]`,
		`:4: upstream.targets[2]: "http://shop" stands at upstream.targets[1] too; change or drop one`},
	{`[limits.concurrency]
scope = "first"
adaptive = true`,
		`:2: limits.concurrency.scope: "first" is not known; write "instance" or "fleet"`},
	{`[[route]]
name = "pages"
match = "/"
gate = "pass"
max_in_flight = 5`,
		`:5: route[1].max_in_flight: gate "pass" has no limits; write gate = "limit", or drop max_in_flight`},
	{`[[route]]
name = "pages"
match = "/"
gate = "pass"
require = ["$cookie_vip=1"]`,
		`:5: route[1].require: gate "pass" compares nothing; write gate = "limit", or drop require`},
	{`[[route]]
name = "pages"
match = "/"
gate = "limit"
require = ["$cookie_vip=1", "$jwt_level>=2"]`,
		`:5: route[1].require[2]: $jwt_level is of a token that is not verified; write auth.jwt_algorithm and ` +
			`auth.jwt_key_file`},
	{`[upstream]
targets = ["http://shop"]
max_conns = 0
policy = "best"`,
		`:3: upstream.max_conns: 0 must be from 1 to 65535` + notOff + `
:4: upstream.policy: "best" is not known; write "least_conn", "round_robin", "random", "first" or "client_hash"`},
	{`[upstream]
targets = ["http://shop"]
[upstream.health]
path = "healthz"`,
		`:4: upstream.health.path: "healthz" is not a path; write it like "/healthz"`},
	{`[limits.connection]
request_burst = 0`,
		`:2: limits.connection.request_burst: 0 must be from 1 to 1073741824` + notOff},
	{`[limits.concurrency]
max_in_flight = 0`,
		`:2: limits.concurrency.max_in_flight: 0 must be from 1 to 1073741824` + notOff},
	{`[limits.window]
size = "2s"
max = -1
max_delay = "1000s"`,
		`:2: limits.window.size: 2s must be from 1ms to 1s
:3: limits.window.max: -1 must be from 0 to 67108863
:4: limits.window.max_delay: 16m40s must be from 0s to 2m6s`},
	{`[fleet]
name = "shop-eu"
[stock]
source = "redis"
[[route]]
name = "order"
match = "POST /{sku}"
gate = "reserve"
sku = "$path_sku"`, `:2: fleet.name: is now name, above the first table: write name = "shop-eu" there`},
	{`name = "A shop"`, `:1: name: "A shop" begins keys in Redis; write 1 to 63 lower-case letters, digits and . _ -, ` +
		`of which the first is a letter or a digit`},
	{`name = ""
[stock]
source = "redis"
[[route]]
name = "order"
match = "POST /{sku}"
gate = "reserve"
sku = "$path_sku"`, `:1: name: is missing: gate = "reserve" keeps orders in Redis, where shops are told apart by it; ` +
		`write above the first table, the same on all instances of this shop: name = "shop-6dbc"`},
	{`[limits.window]
warm_up = "11m"
scope = "world"
[fleet]
instances = -1`,
		`:2: limits.window.warm_up: 11m0s must be from 0s to 10m0s
:3: limits.window.scope: "world" is not known; write "instance" or "fleet"
:5: fleet.instances: -1 must be from 0 to 1048576`},
	{`[limits.concurrency]
queue_timeout = "0s"`,
		`:2: limits.concurrency.queue_timeout: 0s must be above 0s` + notOff},
	{`[[route]]`, `:1: route[1].name: is empty; write a value
:1: route[1].match: is missing; write it like "POST /order/{sku}" or "/"
:1: route[1].gate: is missing; write "pass", "limit", "check" or "reserve"`},
	{`route = []`, `: no [[route]]: every request would be rejected; add one, like name = "all", match = "/", gate = ` +
		`"limit"`},
	{`[[route]]
name = "a"
match = "/"
gate = "${GATE}"`,
		`:4: route[1].gate: "resreve" is not known; write "pass", "limit", "check" or "reserve"`},
	{`[[route]]
name = "a"
match = "/"
gate = "check"`,
		`:1: route[1].sku: is missing: gate "check" must know what is bought; write where it is found, like "$path_sku"`},
	{`[[route]]
name = "a"
match = "/a"
gate = "pass"
[[route]]
name = "a"
match = "/"
gate = "pass"`,
		`:6: route[2].name: "a" stands at route[1].name too; change or drop one`},
	{"[[room]]\nname = \"Main\"\n[[room]]\nname = \"main\"",
		`:4: room[2].name: "main" stands at room[1].name too; change or drop one`},
	{`[stock]
source = "mysql"
on_error = "refuse"
unknown_sku = "maybe"`,
		`:2: stock.source: "mysql" is not known; write "memory", "redis" or "off"
:3: stock.on_error: "refuse" is not known; write "reject" or "allow"
:4: stock.unknown_sku: "maybe" is not known; write "reject" or "allow"`},
	{`[stock]
poll_interval = "5s"
sold_out_ttl = "0s"`,
		`:2: stock.poll_interval: 5s must be from 1ms to 1s
:3: stock.sold_out_ttl: 0s must be above 0s` + notOff},
	{`[stock.redis]
addresses = ["unix:redis.sock"]`,
		`:2: stock.redis.addresses[1]: "unix:redis.sock" has no absolute path; write it like "unix:/run/redis/redis.sock"`},
	{`[stock.redis]
addresses = ["/run/redis.sock"]
topology = "sentinel"
master_name = "shop"`,
		`:2: stock.redis.addresses[1]: "/run/redis.sock" is a unix socket, which leads to one server; write it alone, or ` +
			`host:port for sentinels and a cluster`},
	{`[stock.redis]
addresses = ["unix:/run/redis.sock"]
tls = true`,
		`:3: stock.redis.tls: true is for addresses, and a unix socket has no certificate; write false, or host:port into ` +
			`addresses`},
	{`[stock.redis]
addresses = []
timeout = "0s"`,
		`:2: stock.redis.addresses: is empty; write where Redis is, like ["127.0.0.1:6379"]
:3: stock.redis.timeout: 0s must be above 0s` + notOff},
	{`[stock.redis]
addresses = ["redis", "redis://10.0.0.7:6379/2"]
db = -1`,
		`:2: stock.redis.addresses[1]: "redis" is not an address; write it like "127.0.0.1:6379"
:2: stock.redis.addresses[2]: "redis://10.0.0.7:6379/2" is a URL; write only its host and port, like ` +
			`"127.0.0.1:6379": ` +
			`the user, the password, the database and TLS are the keys username, password_file, db and tls of stock.redis
:3: stock.redis.db: -1 must be from 0 to 1048576`},
	{`[stock.redis]
password_file = "testdata/none"`,
		`:2: stock.redis.password_file: open testdata/none: no such file or directory; write the path of a file that ` +
			`sluice may read`},
	{`[stock.layout]
key = "stock"`,
		`:2: stock.layout.key: "stock" has no $sku: all SKUs would share it; write it like "seckill:stock:$sku"; for a shop with ` +
			`one product write key = "$sku", and sku = "stock" in its [[route]]`},
	{`[stock.layout]
key = "stock:$skus"
sold_out_key = "over"`,
		`:2: stock.layout.key: $skus is not known; did you mean $sku?
:3: stock.layout.sold_out_key: "over" has no $sku: all SKUs would share it; write it like "seckill:stock:$sku"`},
	{`[stock.layout]
type = "hash"`,
		`:2: stock.layout.type: "hash" is not known; write "counter", "hash_sold", "hash_left", "counter_users", "list" or ` +
			`"script"`},
	{`[stock.layout]
type = "hash_sold"
sold_field = ""`,
		`:3: stock.layout.sold_field: is empty; write a value`},
	{`[responses]
format = "json"
languages = ["zh", "en"]`,
		`:2: responses.format: "json" is not known; write "auto", "html", "problem" or "envelope"
:3: responses.languages[1]: "zh" is not known; write "zh-CN" or "en"`},
	{`[responses]
cors_origins = "reflect"`,
		`:2: responses.cors_origins: "reflect" is not a list of origins; write ["https://shop.example"], or [] for none`},
	{`[responses]
cors_origins = ["*", "https://shop.example/", "shop.example", "https://Shop.example", "https://shop.example:443", ` +
		`"null",
  "https://a.example", "https://a.example"]`,
		`:2: responses.cors_origins[1]: "*" is every origin, without cookies; write ["*"] alone, or name the origins
:2: responses.cors_origins[2]: "https://shop.example/" is not an origin; write scheme, host and port as browsers ` +
			`send them, like "https://shop.example"
:2: responses.cors_origins[3]: "shop.example" is not an origin; write scheme, host and port as browsers send them, ` +
			`like "https://shop.example"
:2: responses.cors_origins[4]: "https://Shop.example" is not an origin; write scheme, host and port as browsers send ` +
			`them, like "https://shop.example"
:2: responses.cors_origins[5]: "https://shop.example:443" is not an origin; write scheme, host and port as browsers ` +
			`send them, like "https://shop.example"
:2: responses.cors_origins[6]: "null" is not an origin; write scheme, host and port as browsers send them, like ` +
			`"https://shop.example"
:3: responses.cors_origins[8]: "https://a.example" stands at responses.cors_origins[7] too; change or drop one`},
	{`[responses]
languages = []
retry_after_jitter = "-1s"`,
		`:2: responses.languages: is empty; write "zh-CN", "en" or both
:3: responses.retry_after_jitter: -1s must be from 0s to 1m0s`},
	{`[responses.envelope]
status = 100
body = '{"m":"$mesage","x":$x,"y":"$$"}'`,
		`:2: responses.envelope.status: 100 must be from 200 to 599
:3: responses.envelope.body: $mesage is not known; did you mean $message?
:3: responses.envelope.body: $x is not known; here may stand $code $message $reason $detail $request_id $retry_after ` +
			`$sku, and $$ for a dollar sign`},
	{`[responses.classes.busy]
status = 200
redirect = "busy.html"`,
		`:2: responses.classes.busy.status: 200 is not the status of a rejection; write 400 to 599, or responses.format = ` +
			`"envelope" for a 200
:3: responses.classes.busy.redirect: "busy.html" is neither a path nor a URL; write it like "/sold-out.html"`},
	{`[responses.classes.busy]
status = 700
redirect = "//evil"
retry_after = "2h"`,
		`:2: responses.classes.busy.status: 700 is not the status of a rejection; write 400 to 599, or responses.format = ` +
			`"envelope" for a 200
:3: responses.classes.busy.redirect: "//evil" is neither a path nor a URL; write it like "/sold-out.html"
:4: responses.classes.busy.retry_after: 2h0m0s must be from 0s to 1h0m0s`},
	{`[admin]
listen = ":8090"`,
		`:2: admin.listen: ":8090" can be reached from other machines; write token_file, or listen on 127.0.0.1`},
	{`[admin]
listen = "0.0.0.0:8090"
token_file = "testdata/empty"`,
		`:3: admin.token_file: testdata/empty is empty; write the value into it`},
	{`[admin]
token_file = "testdata/two_lines"`,
		`:2: admin.token_file: testdata/two_lines holds more than one line; write the value alone into it`},
	{`[admin]
token_file = "testdata/short"`,
		`:2: admin.token_file: testdata/short holds fewer than 16 bytes; write a longer secret into it, such as that of: ` +
			`openssl rand -hex 32`},
	{`[ops]
listen = "here"`,
		`:2: ops.listen: "here" is not an address; write it like ":8080", "127.0.0.1:8080" or "unix:/run/sluice.sock"`},
	{`[ops]
listen = ["127.0.0.1:8091", "10.0.0.1:8091"]`,
		`:2: ops.listen: is one address, and here are 2; write it like "127.0.0.1:8090"`},
	{`[log]
level = "loud"`,
		`:2: log.level: "loud" is not known; write "debug", "info", "warn" or "error"`},
	{`[access_log]
output = "syslog"
rejected_per_second = -1
buffer_size = "8GiB"`,
		`:2: access_log.output: "syslog" is not known; write "off", "stdout" or "file:/var/log/sluice/access.log"
:3: access_log.rejected_per_second: -1 must be from 0 to 1073741824
:4: access_log.buffer_size: 8GiB must be from 0B to 4GiB`},
	{`[[route]]
name = "a\u001b[1m"
match = "/"
gate = "pass"
quantity = ""`,
		`:2: route[1].name: "a\x1b[1m" has control characters; write plain text
:5: route[1].quantity: is empty; write a value`},
	{`[upstream]
targets = ["http://shop?x"]`,
		`:2: upstream.targets[1]: "http://shop?(secret)" has more than a scheme, a host and a port: Sluice forwards the ` +
			`path of each request; write "http://shop"`},
	{`[admin]
listen = "gate.internal:8090"
[ops]
listen = "unix:ops.sock"`,
		`:2: admin.listen: "gate.internal:8090" can be reached from other machines; write token_file, or listen on 127.0.0.1
:4: ops.listen: "unix:ops.sock" has no absolute path; write it like "unix:/run/sluice.sock"`},
}
