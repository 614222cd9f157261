package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// described is one row of the reference. No field is empty.
type described struct {
	key, kind, usual, may, example, meaning string
}

// rangesInWords are those of keys that no shared rule of this package checks.
var rangesInWords = map[string]string{
	"server.trusted_proxies": "CIDRs, or \"private\"", "auth.jwt_issuer": "any text", "auth.jwt_audience": "any text",
	"stock.layout.users_key": "text with $sku, or empty", "stock.layout.sold_out_key": "text with $sku, or empty",
	"sale.stock":           "0 to 1073741824 for each SKU",
	"server.socket_group":  "a group, or empty",
	"server.state_dir":     "a folder, or empty",
	"upstream.health.path": "a path, or empty",
	"room.bypass":          "CIDRs and conditions", "room.beacon_chain": "a key, Unix seconds, 1s to 1h; or empty",
	"limits.bypass": "CIDRs, or file:/PATH", "limits.deny": "CIDRs, or file:/PATH",
	"limits.observe_only": "names of limits",
	"limits.rate.name":    "letters, digits and . _ -", "limits.rate.key": "text with a $variable",
	"limits.concurrency.priority": "a condition, or empty",
	"limits.rate.routes":          "names of routes", "limits.in_flight.name": "letters, digits and . _ -",
	"limits.in_flight.key": "text with a $variable", "limits.in_flight.routes": "names of routes",
	"route.match": "a pattern", "route.sku": "text with a $variable",
	"route.user": "text with a $variable, or empty", "route.require": "conditions",
	"stock.sold_out_on.status": "100 to 599",
	"stock.sold_out_on.json":   "names with dots", "stock.sold_out_on.values": "texts, whole numbers, booleans",
	"stock.redis.master_name": "a name, or empty", "stock.redis.username": "a name, or empty",
	"stock.layout.sold_out_at": "any whole number", "stock.layout.status_open": "texts, not empty with a status",
	"stock.layout.status_closed": "a text that is not in status_open",
	"stock.layout.status_field":  "a name, or empty", "stock.layout.prefix": "any text",
	"stock.reserve.confirm_json.path":   "names with dots",
	"stock.reserve.confirm_json.values": "texts, whole numbers, booleans",
	"stock.reserve.status_url":          "a URL with {serial}, or empty", "sale.skus": "texts without braces and blanks",
	"sale.starts": "years 2000 to 2199, with offset", "sale.ends": "after starts, with offset",
	"responses.template_dir": "a folder, or empty", "responses.classes.NAME.status": "400 to 599",
	"responses.classes.NAME.code": "any whole number", "responses.classes.NAME.retry_after": "0s to 1h0m0s",
	"responses.classes.NAME.redirect": "a path, a URL, or empty", "traces.endpoint": "an http or https URL, or empty",
	"settle.database": "postgres://, mysql:// or sqlite:, or empty", "settle.orders_query": "SQL with :sku, or empty",
	"settle.webhook.url": "an http or https URL, or empty", "settle.jobs.url": "an http or https URL, or empty",
	"settle.home.name": "a-z, 0-9, _ and -, not main", "settle.home.database": "postgres://, mysql:// or sqlite:",
	"settle.home.skus":  "SKUs, or their beginnings and *",
	"settle.jobs.kinds": "order.held, order.sold, order.released, order.refunded",
	"settle.reroute_to": "a name of a home, or empty",
	"settle.paid.query": "SQL with :sku, or empty", "upstream.tls.server_name": "a host name, or empty",
	"settle.stock.table": "a name of SQL, or empty", "settle.stock.sku_column": "a name of SQL",
	"settle.stock.left_column": "a name of SQL",
	"admin.listen":             "host:port, unix:/PATH, or empty", "ops.listen": "host:port, unix:/PATH, or empty",
	"access_log.output": "off, stdout or file:/PATH", "route.gate": `"pass", "limit", "check" or "reserve"`,
	"limits.rate.rate": "above 0/s", "limits.connection.request_rate": "above 0/s",
	"stock.sold_out_on.header": "a header name, or name: value", "stock.layout.total_field": "a name",
	"name": "lower-case letters, digits and . _ -, or empty", "room.name": "letters, digits and . _ -",
	"room.sale":               "a name of a sale, or empty",
	"route.room":              "a name of a room, or empty",
	"stock.layout.sold_field": "a name", "stock.layout.left_field": "a name",
}

// reference lists every key with all that is said of it, in the order of the structs.
func rowsOfReference(t *testing.T) (rows []described) {
	t.Helper()
	text := referenceText(t)
	said, may := meanings(text), rules(t, text)
	for _, key := range structKeys(reflect.TypeFor[Config](), "") {
		rows = append(rows, describe(key, said, may))
	}
	return rows
}

func describe(key string, said, may map[string]string) described {
	kind, usual := kindAt(schema(), key)
	d := described{key: key, kind: kind, usual: usual}
	d.meaning, d.example, _ = strings.Cut(said[key], "; e.g. ")
	if unit := fieldAt(reflect.TypeFor[Config](), key).Tag.Get("unit"); unit != "" {
		d.kind += ", " + unit
	}
	switch {
	case rangesInWords[key] != "":
		d.may = rangesInWords[key]
	case kind == "boolean":
		d.may = "true or false"
	case may[key] != "":
		d.may = may[key]
	case strings.HasSuffix(key, "file"):
		d.may = "a path, or empty"
	case strings.HasPrefix(key, "responses.classes."):
		d.may = "a row"
	}
	switch {
	case d.example != "":
	case usual == "`true`":
		d.example = "false"
	case usual == "`false`":
		d.example = "true"
	case usual != "–":
		d.example = strings.Trim(usual, "`")
	}
	if usual == "–" {
		d.usual = missing(key)
	}
	return d
}

// missing says what a key without a default means where it is not written.
func missing(key string) string {
	table, _ := cutLast(key)
	switch {
	case key == "upstream.targets", key == "sale.skus", key == "sale.starts", key == "sale.ends":
		return "required"
	case strings.HasPrefix(key, "responses.classes."), table == "stock.sold_out_on", table == "stock.reserve.confirm_json":
		return "none"
	case key == "sale.stock":
		return "`{}`"
	}
	return "`[]`"
}

// rules are what the checks of this package say of each key of the reference with all its examples.
func rules(t *testing.T, text string) map[string]string {
	t.Helper()
	reserving := strings.Replace(uncommented(text), `gate = "check"`, `gate = "reserve"`, 1)
	c, err := Parse("config.toml", []byte(reserving), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := report{File: "config.toml", Lines: c.lines, Rules: map[string]string{}}
	c.check(&r)
	return r.Rules
}

func TestReference_NoCellIsEmpty(t *testing.T) {
	for _, d := range rowsOfReference(t) {
		v := reflect.ValueOf(d)
		for i := range v.NumField() {
			if v.Field(i).String() == "" {
				t.Errorf("%s has no %s", d.key, v.Type().Field(i).Name)
			}
		}
		if d.kind == "integer" || d.kind == "number" {
			t.Errorf("%s is a number without a unit", d.key)
		}
	}
}

// An example that is no value of its key would send a reader into an error.
func TestReference_ExamplesHaveTheKindOfTheirKeys(t *testing.T) {
	for _, d := range rowsOfReference(t) {
		if strings.Contains(d.key, ".NAME.") {
			continue
		}
		var tree map[string]any
		if _, err := toml.Decode("x = "+d.example, &tree); err != nil {
			t.Errorf("%s = %s: %v", d.key, d.example, err)
			continue
		}
		dec := decoder{report: report{Lines: keyLines{}}}
		dec.value(tree["x"], reflect.New(fieldAt(reflect.TypeFor[Config](), d.key).Type).Elem(), d.key)
		if err := dec.Err(); err != nil {
			t.Errorf("example %s: %v", d.example, err)
		}
	}
}

// fieldAt is the field of a key.
func fieldAt(t reflect.Type, key string) (field reflect.StructField) {
	for name := range strings.SplitSeq(key, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("toml") == name {
				field = t.Field(i)
				break
			}
		}
		t = field.Type
	}
	return field
}

const pageHead = `# Every key

Written by ` + "`make reference`" + ` from the structs, their checks, and the comments of [config.toml](../config.toml).
Editors take ` + "`config.schema.json`" + `; with taplo: ` + "`#:schema ./config.schema.json`" +
	` as the file's first line.
Text may hold ` + "`${NAME}`" + ` or ` + "`${NAME:-fallback}`" + `, from the environment.
`

// page is the table of all keys.
func page(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(pageHead)
	table := "-"
	for _, d := range rowsOfReference(t) {
		in, name := cutLast(d.key)
		if in == "" {
			name = d.key
		}
		if in != table {
			table = in
			writeTitle(&out, in)
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | `%s` | %s |\n", name, d.kind, d.usual, cell(d.may), cell(d.example),
			cell(d.meaning))
		if d.key == "responses.classes.unavailable" {
			writeClassRow(t, &out)
		}
	}
	return out.Bytes()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

const columns = "\n| key | kind | default | range | example | meaning |\n| --- | --- | --- | --- | --- | --- |\n"

func writeTitle(out *bytes.Buffer, table string) {
	title := "Before the first table"
	if table != "" {
		title = "[" + table + "]"
		if kind, _ := kindAt(schema(), table); kind == "list" {
			title = "[" + title + "]"
		}
	}
	fmt.Fprintf(out, "\n## %s\n%s", title, columns)
}

// writeClassRow describes what a row of [responses.classes] may say.
func writeClassRow(t *testing.T, out *bytes.Buffer) {
	t.Helper()
	said := meanings(referenceText(t))
	fmt.Fprintf(out, "\nA row may say:\n%s", columns)
	for i, kind := range []string{"integer, ", "integer, ", "duration", "string"} {
		field := reflect.TypeFor[Class]().Field(i)
		name := field.Tag.Get("toml")
		key := "responses.classes.NAME." + name
		meaning, example, _ := strings.Cut(said[key], "; e.g. ")
		fmt.Fprintf(out, "| `%s` | %s | of the class | %s | `%s` | %s |\n", name, kind+field.Tag.Get("unit"),
			cell(rangesInWords[key]),
			example,
			cell(meaning))
	}
}

// meanings reads what the reference says beside each key, those in comments included.
func meanings(text string) map[string]string {
	header := regexp.MustCompile(`^(?:# )?\[\[?([a-z_.]+)\]\]?(?:$| +#)`)
	line := regexp.MustCompile(`^(?:# )?([a-z_0-9]+) = ("[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^ #]+)(?: +# ?(.*))?$`)
	inner := regexp.MustCompile(`^#   ([A-Za-z_]+\.[a-z_]+): (.*)$`)
	all, table := map[string]string{}, ""
	for l := range strings.SplitSeq(text, "\n") {
		if m := header.FindStringSubmatch(l); m != nil {
			table = m[1]
		} else if m := inner.FindStringSubmatch(l); m != nil {
			all[table+"."+m[1]] = m[2]
		} else if m := line.FindStringSubmatch(l); m != nil {
			all[joinKey(table, m[1])] = m[3]
		}
	}
	return all
}

// kindAt finds a key in the schema, and says its kind and its default in words.
func kindAt(s map[string]any, key string) (kind, usual string) {
	for name := range strings.SplitSeq(key, ".") {
		for s["items"] != nil {
			s = s["items"].(map[string]any)
		}
		s = s["properties"].(map[string]any)[name].(map[string]any)
	}
	kind, _ = s["type"].(string)
	if k, ok := s["title"].(string); ok {
		kind = k
	}
	switch kind {
	case "array":
		kind = "list"
	case "":
		kind = "any"
	}
	usual = "–"
	if d, ok := s["default"]; ok {
		text, err := json.Marshal(d)
		if err != nil {
			return kind, err.Error()
		}
		usual = "`" + string(text) + "`"
	}
	return kind, usual
}

func TestConfig_MeaningsAreReadFromTheReference(t *testing.T) {
	got := meanings("mode = \"enforce\"  # one\n[a]\n# x = [1, 2]  # two\n#   x.y: three\n[[b]]\ny = 'a # b'\n")
	if got["mode"] != "one" || got["a.x"] != "two" || got["a.x.y"] != "three" || len(got) != 4 {
		t.Errorf("read %q", got)
	}
}
