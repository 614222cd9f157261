package config

import (
	"strings"
	"time"
)

// Responses is what a refused shopper gets.
type Responses struct {
	Format           string            `toml:"format"`    // "auto" "html" "problem" "envelope"
	Languages        []string          `toml:"languages"` // at least one: "zh-CN" "en", or of a file in TemplateDir; the first is the fallback
	TemplateDir      string            `toml:"template_dir"`
	Pages            map[string]string // what TemplateDir holds, by file
	PagesDir         string            // where it is
	RetryAfterJitter time.Duration     `toml:"retry_after_jitter"` // 0 to 1 min
	CORSOrigins      Origins           `toml:"cors_origins"`       // whose pages may read; none, or "*" alone
	ReasonHeader     string            `toml:"reason_header"`
	RatelimitHeaders bool              `toml:"ratelimit_headers"`
	Envelope         Envelope          `toml:"envelope"`
	Classes          Classes           `toml:"classes"`
}

// Classes are the answers to the classes of rejections.
type Classes struct {
	Busy         Class `toml:"busy"`
	SoldOut      Class `toml:"sold_out"`
	NotStarted   Class `toml:"not_started"`
	Ended        Class `toml:"ended"`
	Paused       Class `toml:"paused"`
	Confirmed    Class `toml:"confirmed"` // no refusal: a repeated order hears that it was placed
	Duplicate    Class `toml:"duplicate"`
	Denied       Class `toml:"denied"`
	Unidentified Class `toml:"unidentified"`
	UnknownSKU   Class `toml:"unknown_sku"`
	BadRequest   Class `toml:"bad_request"`
	Unavailable  Class `toml:"unavailable"`
}

// Envelope is the shop's own form of an answer, in JSON.
type Envelope struct {
	Status int    `toml:"status"` // 200 to 599
	Body   string `toml:"body"`   // a template of $code $message $reason $detail $request_id $retry_after $sku
}

// Class is the answer to one class of refusals.
type Class struct {
	Status     int           `toml:"status"`      // 400 to 599; of confirmed 200 to 599
	Code       int           `toml:"code"`        // for $code
	RetryAfter time.Duration `toml:"retry_after"` // 0 to 1 h; 0 = the header is left out
	Redirect   string        `toml:"redirect"`    // a path or URL for browsers (303); "" = none
}

func defaultResponses() Responses {
	return Responses{
		Format:           "auto",
		Languages:        []string{"zh-CN", "en"},
		RetryAfterJitter: 2 * time.Second,
		CORSOrigins:      Origins{},
		ReasonHeader:     "X-Sluice-Reason",
		Envelope:         Envelope{Status: 200, Body: `{"code":$code,"msg":"$message","data":null}`},
		Classes: Classes{
			Busy:         Class{Status: 429, RetryAfter: time.Second, Code: 42900},
			SoldOut:      Class{Status: 409, Code: 40901},
			NotStarted:   Class{Status: 403, Code: 40301},
			Ended:        Class{Status: 403, Code: 40302},
			Paused:       Class{Status: 503, RetryAfter: 10 * time.Second, Code: 50301},
			Confirmed:    Class{Status: 200},
			Duplicate:    Class{Status: 409, Code: 40902},
			Denied:       Class{Status: 403, Code: 40303},
			Unidentified: Class{Status: 401, Code: 40100},
			UnknownSKU:   Class{Status: 404, Code: 40400},
			BadRequest:   Class{Status: 400, Code: 40000},
			Unavailable:  Class{Status: 503, RetryAfter: 3 * time.Second, Code: 50300},
		},
	}
}

func (s *Responses) check(r *report) {
	r.oneOf("responses.format", s.Format, "auto", "html", "problem", "envelope")
	s.checkLanguages(r)
	between(r, "responses.retry_after_jitter", s.RetryAfterJitter, 0, time.Minute)
	s.CORSOrigins.check(r, "responses.cors_origins")
	r.token("responses.reason_header", s.ReasonHeader)
	between(r, "responses.envelope.status", s.Envelope.Status, 200, 599)
	if r.filled("responses.envelope.body", s.Envelope.Body) {
		r.variables("responses.envelope.body", s.Envelope.Body, "code", "message", "reason", "detail",
			"request_id", "retry_after", "sku")
	}
	for _, c := range s.classes() {
		if c.class == &s.Classes.Confirmed {
			between(r, "responses.classes.confirmed.status", c.class.Status, 200, 599)
		} else if c.class.Status < 400 || c.class.Status > 599 {
			r.fail("responses.classes."+c.name+".status", "%d is not the status of a refusal; write 400 to 599, or responses.format = \"envelope\" for a 200", c.class.Status)
		}
		c.class.check(r, "responses.classes."+c.name)
	}
}

type namedClass struct {
	name  string
	class *Class
}

func (s *Responses) classes() []namedClass {
	return []namedClass{
		{"busy", &s.Classes.Busy}, {"sold_out", &s.Classes.SoldOut}, {"not_started", &s.Classes.NotStarted}, {"ended", &s.Classes.Ended},
		{"paused", &s.Classes.Paused}, {"confirmed", &s.Classes.Confirmed}, {"duplicate", &s.Classes.Duplicate}, {"denied", &s.Classes.Denied}, {"unidentified", &s.Classes.Unidentified},
		{"unknown_sku", &s.Classes.UnknownSKU}, {"bad_request", &s.Classes.BadRequest}, {"unavailable", &s.Classes.Unavailable},
	}
}

func (c *Class) check(r *report, at string) {
	between(r, at+".retry_after", c.RetryAfter, 0, time.Hour)
	if c.Redirect == "" {
		return
	}
	_, isURL := webURL(c.Redirect)
	path := strings.HasPrefix(c.Redirect, "/") && !strings.HasPrefix(c.Redirect, "//")
	if !isURL && !path || strings.ContainsFunc(c.Redirect, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		r.fail(at+".redirect", "%q is neither a path nor a URL; write it like \"/sold-out.html\"", c.Redirect)
	}
}
