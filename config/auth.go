package config

import "strings"

// Auth is by what users and orders prove what they say.
type Auth struct {
	JWTAlgorithm string `toml:"jwt_algorithm"` // "HS256" "RS256" "EdDSA"; "" = no token is verified
	JWTKeyFile   string `toml:"jwt_key_file"`
	JWTKey       Secret // what JWTKeyFile holds
	// a template: one header or cookie
	JWTFrom           string `toml:"jwt_from"`
	JWTIssuer         string `toml:"jwt_issuer"`   // "" = anything
	JWTAudience       string `toml:"jwt_audience"` // "" = anything
	CookieKeyFile     string `toml:"cookie_key_file"`
	CookieKey         Secret // what CookieKeyFile holds
	OrderTokenKeyFile string `toml:"order_token_key_file"`
	OrderTokenKey     Secret // what OrderTokenKeyFile holds

	RoomKeyFile string `toml:"room_key_file"`
	RoomKeys    Secret // what RoomKeyFile holds: a key a line

	KeyFiles []string // that the keys were read from
}

// JWTCacheSize is how many verified tokens an instance remembers. A signature costs more than its 512 bytes.
const JWTCacheSize = 100_000

func defaultAuth() Auth {
	return Auth{JWTFrom: "$http_authorization"}
}

func (p *Auth) check(r *report, c *Config) {
	r.OneOf("auth.jwt_algorithm", p.JWTAlgorithm, "", "HS256", "RS256", "EdDSA")
	if p.JWTAlgorithm != "" && p.JWTKeyFile == "" {
		r.Fail("auth.jwt_key_file", "is missing: %s verifies with a key; write where it is", p.JWTAlgorithm)
	}
	if p.JWTAlgorithm == "" && p.JWTKeyFile != "" {
		r.Fail("auth.jwt_algorithm", "is missing: the key does not say for which it is; write \"HS256\", \"RS256\" or "+
			"\"EdDSA\"")
	}
	r.Filled("auth.jwt_from", p.JWTFrom)
	for _, t := range c.templates() {
		c.checkProven(r, t.key, t.text)
	}
}

// template is text with variables of requests, and its place.
type template struct{ key, text string }

// templates are all values of c that may have variables of requests.
func (c *Config) templates() (all []template) {
	add := func(key, text string) { all = append(all, template{key, text}) }
	for i := range c.Routes {
		t, at := &c.Routes[i], Element("route", i)
		add(at+".user", t.User)
		add(at+".sku", t.SKU)
		add(at+".quantity", t.Quantity)
		for j, condition := range t.Require {
			add(Element(at+".require", j), condition)
		}
	}
	for i := range c.Limits.Rates {
		add(Element("limits.rate", i)+".key", c.Limits.Rates[i].Key)
	}
	for i := range c.Limits.InFlight {
		add(Element("limits.in_flight", i)+".key", c.Limits.InFlight[i].Key)
	}
	add("limits.concurrency.priority", c.Limits.Concurrency.Priority)
	for i := range c.Rooms {
		for j, entry := range c.Rooms[i].Bypass {
			add(Element(Element("room", i)+".bypass", j), entry)
		}
	}
	return all
}

// checkOrderToken wants what an order token is of.
func (c *Config) checkOrderToken(r *report, t *Route, at string) {
	if !t.OrderToken {
		return
	}
	if c.Auth.OrderTokenKeyFile == "" {
		r.Fail(at+".order_token", "needs a key that all instances share; write auth.order_token_key_file")
	}
	if t.Gate == "pass" || t.SKU == "" || t.User == "" {
		r.Fail(at+".order_token", "is of a user and a SKU; write both, and another gate than \"pass\"")
	}
}

// checkProven wants the keys by which the variables of a template are proven.
func (c *Config) checkProven(r *report, key, template string) {
	for _, name := range variablesOf(template) {
		if isOf(name, "jwt") && c.Auth.JWTAlgorithm == "" {
			r.Fail(key, "$%s is of a token that is not verified; write auth.jwt_algorithm and auth.jwt_key_file", name)
		}
		if isOf(name, "signed") && c.Auth.CookieKeyFile == "" {
			r.Fail(key, "$%s is of a cookie that is not verified; write auth.cookie_key_file", name)
		}
	}
}

// ForgeableVariable is the name of the first variable in a template whose value a client can choose; "" = none.
func ForgeableVariable(template string) string {
	for _, name := range variablesOf(template) {
		if name != "remote_addr" && !isOf(name, "jwt") && !isOf(name, "signed") {
			return name
		}
	}
	return ""
}

// maxKey bounds a file of keys, in bytes: a JWKS may hold many.
const maxKey = 64 << 10

// readKeys reads the keys as they are. A relative path starts from the configuration's folder.
func (p *Auth) readKeys(r *report, folder string) {
	read := func(key, path string) Secret {
		if path == "" {
			return ""
		}
		p.KeyFiles = append(p.KeyFiles, resolvePath(folder, path))
		return Secret(r.Text(key, folder, path, maxKey, "the key"))
	}
	p.JWTKey = read("auth.jwt_key_file", p.JWTKeyFile)
	p.CookieKey = read("auth.cookie_key_file", p.CookieKeyFile).line()
	p.OrderTokenKey = read("auth.order_token_key_file", p.OrderTokenKeyFile).line()
	p.RoomKeys = read("auth.room_key_file", p.RoomKeyFile)
	p.checkRoomKeys(r, folder)
	for _, k := range []struct {
		key, path string
		secret    Secret
	}{{"auth.cookie_key_file", p.CookieKeyFile, p.CookieKey}, {"auth.order_token_key_file", p.OrderTokenKeyFile,
		p.OrderTokenKey}} {
		if k.secret != "" && len(k.secret) < 16 {
			r.Fail(k.key, "%s holds fewer than 16 bytes; write a longer secret into it, such as that of: openssl rand -hex "+
				"32", resolvePath(folder, k.path))
		}
	}
}

// line is a secret without the end of its line.
func (s Secret) line() Secret { return Secret(strings.TrimRight(string(s), "\r\n")) }
