package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// unknown says what could have been meant by name among the keys that its table has.
func unknown(kind, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s; did you mean %q?", kind, near)
	}
	return fmt.Sprintf("unknown %s; here may stand %s", kind, strings.Join(known, ", "))
}

// unknownIn is unknown for a name in a table. A name that is known at the top of the file was meant for there: a line
// that is appended to a file belongs to its last table. A name of few other tables was meant for one of them; a name
// like none of the table is looked for in the others, too.
func unknownIn(table, kind, name string, known []string) string {
	top := reflect.TypeFor[Config]()
	for i := range top.NumField() {
		switch field := top.Field(i); {
		case table == "" || field.Tag.Get("toml") != name:
		case kind == "key" && field.Type.Kind() == reflect.Struct:
			return fmt.Sprintf("unknown key in [%s]; %s is a table of its own, [%s]; here may stand %s",
				WithoutIndexes(table), name, name, strings.Join(known, ", "))
		default:
			return fmt.Sprintf("unknown %s in [%s]; %s belongs above the first [table] of the file", kind,
				WithoutIndexes(table), name)
		}
	}
	tables := map[string][]string{}
	for _, key := range keysBelow(top, "") {
		if in := tableOf(key); in != "" {
			last := key[len(in)+1:]
			tables[last] = append(tables[last], in)
		}
	}
	if in := tables[name]; kind == "key" && len(in) > 0 && len(in) <= 3 {
		where := ""
		if table != "" {
			where = " in [" + WithoutIndexes(table) + "]"
		}
		return fmt.Sprintf("unknown key%s; %s belongs in [%s]", where, name, strings.Join(in, "] or ["))
	}
	if Nearest(name, known) != "" {
		return unknown(kind, name, known)
	}
	near := Nearest(name, slices.Sorted(maps.Keys(tables)))
	switch in := tables[near]; {
	case len(in) != 1:
		return unknown(kind, name, known)
	case table != "" && near == name:
		return fmt.Sprintf("unknown %s in [%s]; %s belongs in [%s]", kind, WithoutIndexes(table), name, in[0])
	case kind == "table":
		return fmt.Sprintf("unknown table; did you mean [%s]?", joinKey(in[0], near))
	default:
		return fmt.Sprintf("unknown key; did you mean %s, which belongs in [%s]?", near, in[0])
	}
}

// keysBelow are the keys and tables that may stand in t, a struct at path.
func keysBelow(t reflect.Type, path string) (keys []string) {
	for i := range t.NumField() {
		tag, field := t.Field(i).Tag.Get("toml"), t.Field(i).Type
		if tag == "" {
			continue
		}
		keys = append(keys, joinKey(path, tag))
		if field.Kind() == reflect.Slice {
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct && field != reflect.TypeFor[time.Time]() {
			keys = append(keys, keysBelow(field, joinKey(path, tag))...)
		}
	}
	return keys
}

const orderGone = "is gone: a free slot goes to the request that has waited longest"

const healthGone = "is gone: every 2s a check has 1s, 200 to 399 pass, and three failed ones take a target " +
	"out; delete the line, and write the upstream.health.path of a response that says whether the shop works"

const beaconChain = "is now part of beacon_chain in [[room]]: write beacon_chain = \"KEY GENESIS PERIOD\""

const inFlightPrefixGone = "is gone: a client is an IPv4 address or an IPv6 /64; delete the line, or write a " +
	"[[limits.rate]] with the prefix"

const orderTokenGone = "is gone: an order token is valid for 1m at least, and 2m at most"

const serviceGone = "is gone: service.name is the name above the first table, or sluice; delete the line, or set that"

const streamGone = "is gone: a stream keeps about 100,000 changes; delete the line, and write " +
	"stream_keep_unread = true where a consumer may be further behind"

const spoolGone = "is gone: responses up to 1MiB are read whole, larger ones are streamed"

// replacements says for each key of an earlier version what to write instead. A table stands for all its keys; %q is
// the value.
var replacements = map[string]string{
	"access_log.refused_every":         "is gone: beyond rejected_per_second one in 1000 is logged",
	"auth.jwt_leeway":                  "is gone: clocks may differ by 30s",
	"fleet.name":                       "is now name, above the first table: write name = %q there",
	"limits.concurrency.min_in_flight": "is gone: an adaptive limit starts at 8",
	"limits.connection.on_excess":      "is gone: a request above the rate is rejected, and its connection stays open",
	"responses.reason_header":          "is gone: the header is X-Sluice-Reason",
	"stock.max_skew":                   "is gone: no sale begins while the clocks differ by more than 2s",
	"upstream.spool":                   spoolGone,
	"upstream.spool_dir":               spoolGone,
	"upstream.spool_size":              spoolGone,
	"auth.jwt_cache_size":              "is gone: 100,000 verified tokens are remembered",
	"limits.in_flight.max_keys":        "is gone: there is room for each key in flight",
	"room.beacon_genesis":              beaconChain,
	"room.beacon_key":                  beaconChain,
	"room.beacon_period":               beaconChain,
	"room.poll_floor":                  "is gone: a client polls once a second at most",
	"settle.batch":                     "is gone: a transaction settles at most 500 changes",
	"settle.jobs.queue": "is gone: jobs wait in River's queue sluice; delete the line, and " +
		"register workers there",
	"settle.jobs.timeout": "is gone: a request of a job has 30s",
	"settle.jobs.workers": "is gone: ten jobs are worked at a time; delete the line, and run more sluice-settle " +
		"work, or answer with Retry-After",
	"settle.paid.every":      "is gone: settle.paid.query runs every 5s for a SKU",
	"settle.webhook.timeout": "is gone: a request has 5s; it is sent again",
	"settle.workers": "is gone: four SKUs are settled at a time; delete the line, and run more " +
		"sluice-settle run",
	"settle.webhook.batch":        "is gone: a request holds at most 100 changes",
	"stock.redis.breaker_errors":  "is gone: 20 errors within 1s open the circuit breaker",
	"stock.redis.breaker_open":    "is gone: the circuit breaker stays open for 1s",
	"stock.redis.connect_timeout": "is gone: a connection may take as long as stock.redis.timeout, and at least 500ms",
	"stock.reserve.max_batch":     "is gone: one call of a script has at most 64 orders",
	"server.read_header_timeout":  "is gone: a header may take half of server.read_timeout, at most 5s; delete this",
	"server.socket_mode": "is gone: a unix socket has 0660; delete the line, and set server.socket_group, " +
		"or SocketMode of a socket unit of systemd",
	"server.write_timeout": "is gone: a client has 30s to take what was written",
	"upstream.connect_timeout": "is gone: a connection may take a fifth of upstream.response_header_timeout, and at " +
		"least 1s; delete the line, or set that",
	"upstream.health.fails":    healthGone,
	"upstream.health.interval": healthGone,
	"upstream.health.passes":   healthGone,
	"upstream.health.status":   healthGone,
	"upstream.health.timeout":  healthGone,
	"upstream.tls.insecure_skip_verify": "is gone: certificates are verified; delete the line, and write the " +
		"upstream's own certificate into upstream.tls.ca_file",
	"upstream.response_memory": "is gone: responses have as much memory as server.body_memory; delete the line, " +
		"or set that",
	"upstream.max_pending": "is gone: 10,000 requests may wait; delete the line, or set " +
		"upstream.queue_timeout",
	"upstream.retry": "is gone: while nothing was written, another target is tried; an order is " +
		"never sent twice",
	"access_log.refused_first":       "is now rejected_per_second",
	"access_log.remember":            "is now buffer_size",
	"limits.concurrency.enforce":     `is now in [limits]: observe_only = ["concurrency"] counts and rejects nothing`,
	"limits.concurrency.order":       orderGone,
	"limits.concurrency.queue_order": orderGone,
	"limits.concurrency.priority_min_share": "is gone: requests that do not meet priority keep a tenth of the " +
		"slots and of the queue",
	"limits.connection.burst":           "is now request_burst",
	"limits.connection.enforce":         `is now in [limits]: observe_only = ["connection"] counts and rejects nothing`,
	"limits.connection.max_open":        "is now max_connections",
	"limits.connection.max_open_per_ip": "is now max_connections_per_ip",
	"limits.connection.rate":            "is now request_rate",
	"limits.rate.enforce":               "is now in [limits]: observe_only = [NAME] counts and rejects nothing",
	"limits.window.carry":               "is now max_delay, a duration: so many times limits.window.size",
	"limits.window.enforce":             `is now in [limits]: observe_only = ["window"] counts and rejects nothing`,
	"metrics":                           "is now [ops], and max_skus is metrics_max_skus there",
	"proof":                             "is now [auth]; jwt_remember and order_token_slot are gone",
	"queue.max_body": "is now max_order, which bounds the whole request that waits, with its header: write what an " +
		"order may take in Redis",
	"auth.jwt_remember":                 "is gone: 100,000 verified tokens are remembered",
	"auth.order_token_slot":             orderTokenGone,
	"auth.order_token_ttl":              orderTokenGone,
	"reload":                            "is now watch_config, before the first table",
	"responses.cors":                    "is now cors_origins",
	"sale.before":                       `is now before_start; "refuse" is "reject"`,
	"settle.orders":                     "is now orders_query in [settle]",
	"stock.few":                         "is now low_stock",
	"stock.layout.driver":               "is gone: write type, and the keys of that type (docs/layouts.md)",
	"stock.layout.sold_out_flag":        "is now sold_out_key",
	"stock.per_unit":                    "is now max_in_flight_per_unit",
	"stock.redis.breaker_pause":         "is gone: the circuit breaker stays open for 1s",
	"stock.refresh":                     "is now poll_interval",
	"stock.reserve.events":              streamGone,
	"stock.reserve.stream_max_events":   streamGone,
	"stock.reserve.events_acknowledged": "is now stream_keep_unread",
	"stock.reserve.fence": `is now on_not_found: write "keep" for "none", "release_after_deadline" for "deadline", ` +
		`"cancel_then_release" for "cancel", "release_after_ttl" for "hold"`,
	"stock.reserve.hold":     "is now reservation_ttl",
	"stock.reserve.mirror":   "is now write_back",
	"stock.reserve.per_user": "is now max_per_user",
	"stock.script": "is gone: Sluice runs no script of the shop; write gate = \"check\" and describe the script's " +
		"keys in [stock.layout] (docs/layouts.md), so that the shop's script goes on to decide, or keep gate = \"reserve\" without " +
		"this table, so that Sluice's ledger decides (docs/shop.md)",
	"stock.show":            `is now detail; "few" is "level"`,
	"stock.sold_out_memory": "is now sold_out_ttl",
	"traces.one_in":         "is now sample_ratio: 0.01 for 100",
	"traces.service":        serviceGone,
	"traces.service_name":   serviceGone,
	"cache.stale_while_revalidate": "is gone: a stale response is served for 10s while one request fetches it " +
		"anew, and never longer than cache.stale_if_error; delete the line, or set that",
	"limits.in_flight.ipv4_prefix": inFlightPrefixGone,
	"limits.in_flight.ipv6_prefix": inFlightPrefixGone,
	"log.format":                   "is gone: the log is text on a terminal, and JSON otherwise",
	"queue.attempts":               "is gone: an order has ten attempts; delete the line, or set queue.deliver_within",
	"stock.layout.users_scope":     "is gone: users_key without $sku is one set for several SKUs",
	"stock.redis.pool_size":        "is gone: there are 16 connections to each server",
	"stock.redis.read_from": "is gone: stock is read from stock.redis.replicas where that names any; delete the " +
		"line, and those too for \"master\"",
	"upstream.response_timeout": "is now response_header_timeout",
}

// replaced tells what to write instead of a key of an earlier version; "" when there was no such key.
func replaced(key string, value any) string {
	key = WithoutIndexes(key)
	for _, class := range (&Responses{}).classes() {
		if key == "responses."+class.name {
			return "is now a row of [responses.classes]: write " + class.name + " = { status = 409, ... } there"
		}
	}
	message := replacements[key]
	if strings.Contains(message, "%q") {
		return fmt.Sprintf(message, fmt.Sprint(value))
	}
	says := func(what string) bool { return strings.Contains(message, what) }
	if says("is gone") && !says("delete ") && !says("write ") {
		return message + "; delete the line"
	}
	return message
}
