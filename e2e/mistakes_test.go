package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const shopSetting = "upstream.targets = [\"http://127.0.0.1:9000\"]\n"

// The mistakes that a newcomer makes in a file: each message has its place, its cause and the way out.
func TestMistakes_InTheFile(t *testing.T) {
	t.Parallel()
	order := strings.Replace(routes, "[[route]]", "[[route]] # order", 1)
	for name, c := range map[string]struct {
		text string
		want []string // "%" is the file's name
	}{
		"wrong key": {"[upstream]\ntarget = \"http://127.0.0.1:9000\"\n" + routes,
			[]string{`%:2: upstream.target: unknown key; did you mean "targets"?`}},
		"wrong table": {shopSetting + routes + "[limit.window]\nmax = 1\n",
			[]string{`: limit: unknown table; did you mean "limits"?`}},
		"wrong type": {"server.trusted_proxies = \"10.0.0.1\"\n" + shopSetting + routes,
			[]string{`%:1: server.trusted_proxies: wants a list, not a string; write ["10.0.0.1"]`}},
		"text for a number": {"limits.window.max = \"50\"\n" + shopSetting + routes,
			[]string{`%:1: limits.window.max: wants a whole number, not a string; write it without quotes`}},
		"unknown unit": {"limits.window.size = \"10 millis\"\n" + shopSetting + routes,
			[]string{`%:1: limits.window.size: "10 millis" is not a duration; write it like "10ms"`}},
		"no unit": {"limits.window.size = 10\n" + shopSetting + routes,
			[]string{`%:1: limits.window.size: `, `10 has no unit; write "10ms", "10s" or "10m"`}},
		"no window": {"limits.window.size = \"0s\"\n" + shopSetting + routes,
			[]string{`%:1: limits.window.size: 0s must be from 1ms to 1s`}},
		"negative number": {"limits.window.max = -1\n" + shopSetting + routes,
			[]string{`%:1: limits.window.max: -1 must be from 0 to `}},
		"no connections": {"upstream.max_conns = 0\n" + shopSetting + routes,
			[]string{`%:1: upstream.max_conns: 0 must be from 1 to 65535`}},
		"bad TOML": {shopSetting + "mode = \"enforce\n" + routes,
			[]string{`%:2: mode: strings cannot contain newlines; close the quotes on this line`, "(column "}},
		"key twice": {"mode = \"observe\"\n" + shopSetting + "mode = \"enforce\"\n" + routes,
			[]string{`%:3: mode: `, "has already been defined: on line 1; drop one of them"}},
		"route name twice": {shopSetting + routes + routes,
			[]string{`%:16: route[3].name: "order" stands at route[1].name too; change or drop one`,
				"%:17: route[3].match: can never match"}},
		"shadowed route": {shopSetting + "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n" + order,
			[]string{`.match: can never match: route "all" before it takes every such request; write the narrow route first`}},
		"unknown placeholder": {shopSetting + strings.Replace(routes, "$path_sku", "$path_id", 1),
			[]string{".sku: ", "$path_id: the pattern has no {id}"}},
		"unknown variable": {shopSetting + strings.Replace(routes, "$path_sku", "$foo", 1),
			[]string{".sku: ", "$foo", "one of "}},
		"wildcard": {shopSetting + strings.Replace(routes, "{sku}", "*", 1),
			[]string{".match: ", "write \"POST /api/seckill/{name}/order\""}},
		"colon parameter": {shopSetting + strings.Replace(routes, "{sku}", ":sku", 1),
			[]string{".match: ", `":sku" stands for itself alone: write "POST /api/seckill/{sku}/order"`}},
		"regular expression": {shopSetting + strings.Replace(routes, "{sku}", "[0-9]+", 1),
			[]string{".match: ", `regular expressions match nothing: write "POST /api/seckill/{name}/order"`}},
		"no slash": {shopSetting + strings.Replace(routes, "POST /", "POST ", 1),
			[]string{".match: ", `"api" is not a host name: write "POST /api/seckill/{sku}/order"`}},
		"no dollar": {shopSetting + strings.Replace(routes, "$path_sku", "path_sku", 1),
			[]string{".sku: ", `"path_sku" is the same for every request: write "$path_sku"`}},
		"layout without SKU": {shopSetting + "stock.layout.key = \"stock\"\n" + routes,
			[]string{`%:2: stock.layout.key: `, "has no $sku: all SKUs would share it; write it like "}},
		"no slots": {"limits.concurrency.max_in_flight = 0\n" + shopSetting + routes,
			[]string{`%:1: limits.concurrency.max_in_flight: 0 must be from 1 to `,
				`; 0 is not "off": leave the key out for its default`}},
		"unset variable": {"upstream.targets = [\"${SHOP_NOWHERE}\"]\n" + routes,
			[]string{`${SHOP_NOWHERE} is not set; set it, or write ${SHOP_NOWHERE:-fallback}`}},
		"no password file": {"stock.redis.password_file = \"/nowhere/secret\"\n" + shopSetting + routes,
			[]string{"%:1: stock.redis.password_file: open /nowhere/secret: no such file or directory; " +
				"write the path of a file"}},
		"key of another table": {
			shopSetting + strings.Replace(routes, "gate =", "sold_out_on = { status = [409] }\ngate =", 1),
			[]string{`.sold_out_on: unknown table in [route]; sold_out_on belongs in [stock]`},
		},
		"rate without burst": {shopSetting + routes + "[[limits.rate]]\nname = \"n\"\nkey = \"$remote_addr\"\nrate = \"5/s\"",
			[]string{`.burst: is missing or 0; write how many requests of one key may come at once`}},
		"inline password": {"stock.redis.password = \"secret\"\n" + shopSetting + routes,
			[]string{`%:1: stock.redis.password: unknown key; did you mean "password_file"?`}},
		"sale without offset": {shopSetting + routes + "[[sale]]\nname = \"n\"\nskus = [\"1\"]\n" +
			"starts = 2026-11-11T20:00:00\nends = 2026-11-11T21:00:00\n",
			[]string{"needs a date, a time and an offset; write it like "}},
		"sale in quotes": {shopSetting + routes + "[[sale]]\nname = \"n\"\nskus = [\"1\"]\n" +
			"starts = \"2026-11-11T20:00:00\"\nends = \"2026-11-11T21:00:00\"\n",
			[]string{"write it without quotes, like 2026-11-11T00:00:00+08:00"}},
		"open admin": {"admin.listen = \"0.0.0.0:8090\"\n" + shopSetting + routes,
			[]string{`%:1: admin.listen: "0.0.0.0:8090" can be reached from other machines; ` +
				"write token_file, or listen on 127.0.0.1"}},
		"gate as its own upstream": {"upstream.targets = [\"http://localhost:8080\"]\n" + routes,
			[]string{`%:1: upstream.targets[1]: "http://localhost:8080" is the gateway's own address`,
				"write the address of the shop"}},
		"CA for plain HTTP": {shopSetting + "upstream.tls.ca_file = \"ca.pem\"\n" + routes,
			[]string{"upstream.tls.ca_file: no target of upstream.targets begins with https://", "open "}},
	} {
		path := file(t, c.text)
		got := run(t, "", "check", path)
		if got.code != 1 {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.complaint)
		}
		for _, want := range c.want {
			if want = strings.ReplaceAll(want, "%", path); !strings.Contains(got.complaint, want) {
				t.Errorf("%s: %q\nlacks %q", name, got.complaint, want)
			}
		}
	}
}

// Mistakes of command lines.
func TestMistakes_OnTheCommandLine(t *testing.T) {
	t.Parallel()
	good := file(t, shopSetting+routes)
	nothing := filepath.Join(t.TempDir(), "config.toml")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"check " + nothing, 1, `no such file; write one with "sluice init", or name another file`},
		{"check --jsn " + good, 2, "unknown flag --jsn, did you mean --json?"},
		{"check -f " + good, 2, "unknown flag -f, did you mean --config?"},
		{"explain /orders/1 --data x -c " + good, 2, "unknown flag --data, did you mean --body?"},
		{"explain limits.windw.max -c " + good, 1, `, did you mean limits.window.max?; sluice config print`},
		{"status " + good, 2, "did you mean --config " + good + "?"},
		{"chekc", 2, `unknown command "chekc", did you mean "check"?`},
		{"check " + good + " b", 2, `unexpected argument "b"`},
		{"check -c " + good, 0, ""},
		{"check -config " + good, 2, "did you mean --config"},
		{"--version", 0, ""},
	} {
		got := run(t, "", strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.complaint, c.want) {
			t.Errorf("%s: exit code %d, %q\nwant %d, %q", c.args, got.code, got.complaint, c.code, c.want)
		}
	}
}

// Redis is down, gets lost, or wants a password: the log says first what becomes of orders, check --online what to do.
func TestMistakes_WithRedis(t *testing.T) {
	t.Parallel()
	g := gate(
		t,
		open(t, nil).setting(),
		`stock.source = "redis"`,
		"stock.redis.addresses = "+quoted(strings.TrimPrefix(nowhere(t), "http://")),
	)
	soon(t, "the consequence is told", func() bool {
		return strings.Contains(g.log.String(), "cannot reach Redis; orders are rejected with 503 (stock.on_error)")
	})
	r := redistest.Start(t, "--requirepass", "right")
	secret := file(t, "wrong\n")
	path := file(t, open(t, nil).setting()+"\nstock.source = \"redis\"\nstock.redis.addresses = "+quoted(r.Addr)+
		"\nstock.redis.password_file = "+quotedText(secret)+"\n"+routes)
	got := run(t, "", "check", "--online", path)
	wants(t, got.out+got.complaint, "WRONGPASS", "stock.redis.password_file")
}

// The upstream is down, has a certificate that cannot be verified, or is spoken to in the wrong protocol.
func TestMistakes_WithTheUpstream(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	expired := selfSigned(t, time.Now().Add(-time.Hour))
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{Certificates: []tls.Certificate{expired}}
	old.StartTLS()
	t.Cleanup(old.Close)
	ca := inPEM(t, secure.Certificate().Raw)
	other := inPEM(t, selfSigned(t, time.Now().Add(time.Hour)).Certificate[0])
	host := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct {
		url, tls, online, log string
	}{
		"down":       {nowhere(t), "", "start the upstream, or correct upstream.targets", "connection refused"},
		"unknown CA": {secure.URL, "", "upstream.tls.ca_file", "upstream.tls.ca_file"},
		"wrong CA":   {secure.URL, "ca_file = " + quotedText(other), "upstream.tls.ca_file", "upstream.tls.ca_file"},
		"wrong name": {host, "ca_file = " + quotedText(ca), "upstream.tls.server_name", "upstream.tls.server_name"},
		"expired": {old.URL, "ca_file = " + quotedText(inPEM(t, expired.Certificate[0])),
			"renew the certificate", "renew the certificate"},
		"plain to TLS": {strings.Replace(secure.URL, "https", "http", 1), "", "write " + secure.URL, ""},
		"TLS to plain": {strings.Replace(plain.URL, "http", "https", 1), "", "write http://", "write http://"},
	} {
		setting := "stock.source = \"memory\"\nupstream.timeout = \"50s\"\nupstream.response_header_timeout = \"50s\"\n" +
			"upstream.targets = [" + quotedText(c.url) + "]"
		tables := ""
		if c.tls != "" {
			tables = "\n[upstream.tls]\n" + c.tls + "\n"
		}
		got := run(t, "", "check", "--online", file(t, setting+tables+"\n"+routes))
		if got.code != 3 || !strings.Contains(got.out, c.online) {
			t.Errorf("%s: exit code %d, %s\nlacks %s", name, got.code, got.out, c.online)
		}
		if c.log == "" {
			continue
		}
		if c.tls != "" {
			setting += "\nupstream.tls." + c.tls
		}
		g := gate(t, setting)
		resp, err := http.Get("http://" + g.front + "/page")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 503 {
			t.Errorf("%s: status %d, want 503", name, resp.StatusCode)
		}
		g.logs(t, "cannot connect to the upstream", "requests that no other target takes are answered 503", c.log)
		g.measures(t, "sluice_upstream_connect_errors_total")
		soon(t, "the status names the cause",
			func() bool { return strings.Contains(ok(t, "status", "--json", "--admin", g.admin), c.log) })
	}
	good := gate(t, "stock.source = \"memory\"", "upstream.targets = ["+quotedText(secure.URL)+"]",
		"upstream.tls.ca_file = "+quotedText(ca))
	resp, err := http.Get("http://" + good.front + "/page")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 || resp.Header.Get("X-Sluice-Reason") != "" {
		t.Errorf(
			"a certificate of the CA: %d %q, want the shop's own 404",
			resp.StatusCode,
			resp.Header.Get("X-Sluice-Reason"),
		)
	}
}

// selfSigned is a certificate for 127.0.0.1 that is its own CA.
func selfSigned(t *testing.T, expires time.Time) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: expires.Add(-24 * time.Hour), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// inPEM is a file that holds a certificate.
func inPEM(t *testing.T, der []byte) string {
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// What a running gate tells of its file: it is gone, it is broken, a key of it needs a restart.
func TestMistakes_WithTheFileOfARunningGate(t *testing.T) {
	t.Parallel()
	admin := testkit.FreeAddress(t)
	g := gate(t, `server.listen = ["127.0.0.1:0"]`, `ops.listen = "127.0.0.1:0"`, "admin.listen = "+quotedText(admin),
		open(t, nil).setting(), `stock.source = "memory"`)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) { put(t, g.file, text) }
	write(strings.Replace(string(text), "[[route]]", "[[route]\n", 1))
	g.logs(t, "configuration not reloaded")
	got := run(t, "", "status", "--config", g.file)
	wants(t, got.out, "reload    rejected")
	wants(t, got.complaint, "is broken; a running gateway keeps the configuration before. Asking it at")

	write("ops.metrics_max_skus = 7\nlimits.window.size = \"20ms\"\n" + string(text))
	g.logs(t, "ops.metrics_max_skus: changes only with a restart")
	printed := ok(t, "config", "print", "--admin", g.admin)
	wants(t, printed, `limits.window.size = "10ms"`, `ops.metrics_max_skus = 100`)

	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	soon(t, "the deleted file is told", func() bool {
		return strings.Contains(g.log.String(), "no such file; restore it: sluice config print --admin 127.0.0.1:8090")
	})
	wants(t, run(t, "", "status", "--admin", g.admin).out, "reload    rejected", "no such file")
	g.measures(t, "sluice_config_last_reload_successful 0")
	write(string(text))
	soon(t, "the file is back", func() bool {
		_, metrics := g.peek("/metrics")
		return strings.Contains(metrics, "sluice_config_last_reload_successful 1")
	})
}

func quotedText(text string) string { return `"` + text + `"` }

// A name that an operator types and that is none of the configuration is answered with the one that is meant.
func TestMistakes_InNames(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g := gate(t, redisAt(r), open(t, nil).setting(), unlimited, perUser+routes+hours("double-11", "2099", `"1001"`, ""))
	for args, want := range map[string]string{
		"sale pause duble-11":  `sale "duble-11" is not configured; did you mean "double-11"?`,
		"sale end night":       `sale "night" is not configured; there are double-11`,
		"limit show per_usr 7": `limit "per_usr": not valid: no limit by key has this name; did you mean "per_user"?`,
		"room hold double-11":  "there is no waiting room",
		"override set limits.rate[peruser].burst 3 --for 1m": `no [[rate]] is called "peruser"; did you mean "per_user"?`,
	} {
		if out, good := g.command(strings.Fields(args)...); good || !strings.Contains(out, want) {
			t.Errorf("%s: %s", args, out)
		}
	}
	s := run(t, "", "sale", "resume", "--config", g.file, "double11")
	if s.code != 1 || !strings.Contains(s.complaint, `did you mean "double-11"?`) {
		t.Errorf("without a running gate: exit code %d: %s", s.code, s.complaint)
	}
}
