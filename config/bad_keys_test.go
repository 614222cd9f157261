package config

var syntaxMistakes = []mistake{
	{`mode = "enforce"
mode = "observe"`,
		`:2: mode: key 'mode' has already been defined: on line 1; drop one of them`},
	{`[server]
listen = [":8080"
[log]`,
		`:3: server.listen: expected a comma (',') or array terminator (']'), but got '['; write a comma between values, and ` +
			`] at the end of the list (column 19)`},
	{"mode = “observe”", `:1: mode: expected value but found '“' instead; write " in place of “ (column 8)`},
	{`server.trusted_proxies = ["10.0.0.0/8"，"192.168.0.0/16"]`,
		`:1: server.trusted_proxies: expected a comma (',') or array terminator (']'), but got '，'; write , in place of ， ` +
			`(column 39)`},
	{"mode ＝ 1", `:1: expected '.' or '=', but got '＝' instead; write = in place of ＝ (column 6)`},
	{"mode： 1", `:1: expected '.' or '=', but got '：' instead; write = in place of ： (column 5)`},
	{"mode\u3000= 1", `:1: expected '.' or '=', but got '\u3000' instead; delete this character, or write a space: it only ` +
		`looks like one (column 5)`},
	{"mode = 1 # \xb9\xdb", `:1: invalid UTF-8 byte: 0xb9; save the file as UTF-8, and not as GBK (column 11)`},
	{"admin.token_file = \"C:\\secret\"", `:1: admin.token_file: invalid escape in string '\s'; write two of \, or ' ' ` +
		`around the text (column 21)`},
	{"[route]\nname = \"a\"\n[[route]]\nname = \"b\"", ":3: key 'route' was already created and cannot be used as an " +
		"array: on line 1; write [[route]], with two brackets, on each of these lines"},
	{"[limits.window]\nmax_in_flight = 5\ntrusted_proxies = []",
		`:2: limits.window.max_in_flight: unknown key in [limits.window]; max_in_flight belongs in ` +
			`[limits.concurrency] or [route] or [queue]
:3: limits.window.trusted_proxies: unknown key in [limits.window]; trusted_proxies belongs in [server] or [decide]`},
	{"trusted_proxies = []", `:1: trusted_proxies: unknown key; trusted_proxies belongs in [server] or [decide]`},
	{`stock.on_error = "reject"
stock.redis.timeout = "1s"
[stock]
source = "redis"`,
		":3: key 'stock' has already been defined: on line 1; " +
			"keys with a dot above [stock] made it already: write them below it, without its name"},
	{`[log]
[log]`,
		`:2: key 'log' has already been defined: on line 1; drop one of them`},
	{`[log]
level = "info"

[stock
source = "redis"`,
		`:4: the name of a table is not closed; write it like [stock] or [[route]] (column 7)`},
	{`[[route]
name = "a"`,
		`:1: the name of a table is not closed; write it like [stock] or [[route]] (column 8)`},
	{`[log]
level = info`,
		`:2: log: expected a top-level item to end with a newline, comment, or EOF, but got 'o' instead; write one key a ` +
			`line, and text in quotes (column 12)`},
	{`[log]
level = "info`,
		`:2: log.level: strings cannot contain newlines; close the quotes on this line (column 14)`},
	{`# a comment

log`,
		`:3: expected '.' or '=', but got '\n' instead (column 4)`},
	{`[log]
level = ${LEVEL}`,
		`:2: log.level: expected value but found '$' instead; write one key a line, and text in quotes (column 9)`},
	{`[log] level = "info"`, `:1: log: expected a top-level item to end with a newline, comment, or EOF, but got 'l' ` +
		`instead; write one key a line, and text in quotes (column 6)`},
	{`mode = "\q"`, `:1: mode: invalid escape in string '\q'; write two of \, or ' ' around the text (column 9)`},
	{`[limits.connection]
request_burst = 010`,
		`:2: limits.connection.request_burst: invalid integer "010": cannot have leading zeroes (column 17)`},
	{"a = \x01", `:1: a: TOML files cannot contain control characters: '0x01' (column 4)`},
}

var keyMistakes = []mistake{
	{`[stock.script]
preset = "lock"
keys = ["stock:$sku", "lock:$sku"]`,
		`:1: stock.script: ` + replacements["stock.script"]},
	{`[stock.layout]
driver = "lock"`,
		`:2: stock.layout.driver: ` + replacements["stock.layout.driver"]},
	{`[limits.window]
size = "10ms"
maximum = 3`,
		`:3: limits.window.maximum: unknown key; did you mean "max"?`},
	{`[server]
readTimeout = "1s"`,
		`:2: server.readTimeout: unknown key; did you mean "read_timeout"?`},
	{`[server]
LISTEN = [":1"]`,
		`:2: server.LISTEN: unknown key; did you mean "listen"?`},
	{`[limit]
window.max = 3`,
		`:1: limit: unknown table; did you mean "limits"?`},
	{`[server]
mode = "observe"`,
		`:2: server.mode: unknown key in [server]; mode belongs above the first [table] of the file`},
	{`[log]
queue = true`,
		`:2: log.queue: unknown key in [log]; queue is a table of its own, [queue]; here may stand level`},
	{`[stock.layout]
key = "stock:$sku"
server.trusted_proxies = ["127.0.0.1/32"]`,
		`:3: stock.layout.server: unknown table in [stock.layout]; server belongs above the first [table] of the file`},
	{`[log]
zzz = 1
levell = "info"`,
		`:2: log.zzz: unknown key; here may stand level
:3: log.levell: unknown key; did you mean "level"?`},
	{`[responses.classes.soldout]
status = 409`,
		`:1: responses.classes.soldout: unknown table; did you mean "sold_out"?`},
	{"[server]\nmax_conections = 100\n",
		`:2: server.max_conections: unknown key; did you mean max_connections, which belongs in [limits.connection]?`},
	{"[redis]\n", `:1: redis: unknown table; did you mean [stock.redis]?`},
	{`stock = { redis = { adresses = [] } }`, `:1: stock.redis.adresses: unknown key; did you mean "addresses"?`},
	{`
"log"."le vel" = 1`,
		`:2: log."le vel": unknown key; did you mean "level"?`},
	{`[[server]]
listen = [":1"]`,
		`:1: server: may stand only once; write [server]`},
	{`[route]
name = "x"`,
		`:1: route: may stand more than once; write [[route]] for each`},
	{`route = "x"`, `:1: route: wants tables, not a string; write [[route]] for each`},
	{`log = "info"`, `:1: log: wants a table, not a string; write log = { ... }`},
	{`[log]
level = "${LEVEL}"`,
		`:2: log.level: ${LEVEL} is not set; set it, or write ${LEVEL:-fallback}`},
	{`[log]
# ${COMMENT}
level = "${LEVEL}${OTHER:-x}"`,
		`:3: log.level: ${LEVEL} is not set; set it, or write ${LEVEL:-fallback}`},
	{`[log]
level = "${LEVEL"`,
		`:2: log.level: "${LEVEL" has no closing }; write $${ for a literal one`},
	{`[log]
level = "${9}"`,
		`:2: log.level: "${9}" names no environment variable; write ${NAME} or ${NAME:-fallback}, and $${ for a ` +
			`literal one`},
	{`[log]
level = "${LEVEL-info}"`,
		`:2: log.level: "${LEVEL-info}" names no environment variable; write ${NAME} or ${NAME:-fallback}, and $${ for a ` +
			`literal one`},
	{`[server]
listen = [
  ":1",
  ":${POTR}",
]`,
		`:4: server.listen[2]: ${POTR} is not set; set it, or write ${POTR:-fallback}`},
}

var typeMistakes = []mistake{
	{`[server]
read_timeout = 5`,
		`:2: server.read_timeout: 5 has no unit; write "5ms", "5s" or "5m"`},
	{`[server]
read_timeout = "5"`,
		`:2: server.read_timeout: "5" has no unit; write "5ms", "5s" or "5m"`},
	{`[server]
read_timeout = 1.5`,
		`:2: server.read_timeout: 1.5 has no unit; write "1.5ms", "1.5s" or "1.5m"`},
	{`[server]
read_timeout = "5 s"`,
		`:2: server.read_timeout: "5 s" is not a duration; write "5s"`},
	{`[server]
read_timeout = "2 seconds"`,
		`:2: server.read_timeout: "2 seconds" is not a duration; write "2s"`},
	{`[server]
read_timeout = "2 moons"`,
		`:2: server.read_timeout: "2 moons" is not a duration; write it like "10ms", "1s" or "1m30s"`},
	{`[server]
max_body_size = "64k"`,
		`:2: server.max_body_size: "64k" is not a size; write "64KiB"`},
	{`[server]
idle_timeout = "1d"`,
		`:2: server.idle_timeout: "1d" is not a duration; write days as hours, like "24h"`},
	{`[server]
read_timeout = true`,
		`:2: server.read_timeout: wants a duration like "10ms", not a boolean`},
	{`[server]
max_body_size = 65536`,
		`:2: server.max_body_size: 65536 has no unit; write "65536B" or "65536KiB"`},
	{`[server]
max_body_size = "65536"`,
		`:2: server.max_body_size: "65536" has no unit; write "65536B", "16KiB" or "1MiB"`},
	{`[server]
max_body_size = "64KB"`,
		`:2: server.max_body_size: "64KB" is not a size; write it like "512B", "16KiB" or "1MiB"`},
	{`[server]
max_body_size = []`,
		`:2: server.max_body_size: wants a size like "16KiB", not a list`},
	{`[limits.connection]
request_rate = 50`,
		`:2: limits.connection.request_rate: 50 has no unit; write "50/s" or "50/m"`},
	{`[limits.connection]
request_rate = "50"`,
		`:2: limits.connection.request_rate: "50" has no unit; write "50/s" or "50/m"`},
	{`[limits.connection]
request_rate = "50/w"`,
		`:2: limits.connection.request_rate: "50/w" is not a rate; write it like "20/s", "600/m", "100/h" or "5/d"`},
	{`[limits.connection]
request_rate = "0/s"`,
		`:2: limits.connection.request_rate: a rate of 0 rejects every request; write a larger one`},
	{`[limits.connection]
request_rate = "-1/s"`,
		`:2: limits.connection.request_rate: "-1/s" is not a rate; write it like "20/s", "600/m", "100/h" or "5/d"`},
	{`[server]
listen = [8080]`,
		`:2: server.listen[1]: wants a string, not a whole number; write ":8080"`},
	{`[upstream]
max_conns = "512"`,
		`:2: upstream.max_conns: wants a whole number, not a string; write it without quotes`},
	{`[upstream]
max_conns = 1.5`,
		`:2: upstream.max_conns: wants a whole number, not a number with a point`},
	{`[upstream]
pass_host = "true"`,
		`:2: upstream.pass_host: wants true or false, not a string; write it without quotes`},
	{`[log]
level = 1`,
		`:2: log.level: wants a string, not a whole number; write "1"`},
	{`[[sale]]
starts = 2026-11-11T00:00:00
ends = "tomorrow"`,
		`:2: sale[1].starts: needs a date, a time and an offset; write it like 2026-11-11T00:00:00+08:00
:3: sale[1].ends: wants a time, not the string "tomorrow"; write it without quotes, like 2026-11-11T00:00:00+08:00`},
	{`[stock.reserve]
confirm_json = { path = "code", values = [1.5] }`,
		`:2: stock.reserve.confirm_json.values[1]: wants a string, a whole number or a boolean, not a number with a point`},
	{`[[sale]]
starts = 2026-11-11
stock = 5`,
		`:2: sale[1].starts: needs a date, a time and an offset; write it like 2026-11-11T00:00:00+08:00
:3: sale[1].stock: wants a table, not a whole number; write stock = { ... }`},
	{`[log]
level = 2026-11-11`,
		`:2: log.level: wants a string, not a date`},
	{`[log]
level = {}`,
		`:2: log.level: wants a string, not a table`},
	{`[server]
read_timeout = "${TIMEOUT}"`,
		`:2: server.read_timeout: ${TIMEOUT} is not set; set it, or write ${TIMEOUT:-fallback}`},
	{`[[route]]
sku = "${json_id}"`,
		`:2: route[1].sku: ${json_id} is not set; set it, write ${json_id:-fallback}, or $(json_id) for a variable of the ` +
			`request`},
}
