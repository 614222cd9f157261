package config

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Origins are web origins in their serialised form (RFC 6454, section 6.2), which browsers send and which are compared
// byte by byte. "*" stands alone, for all of them.
type Origins []string

// Responses is what a rejected client gets.
type Responses struct {
	Format string `toml:"format" words:"auto html problem envelope"`
	// at least one: "zh-CN" "en", or of a file in TemplateDir; the first is the fallback
	Languages        []string          `toml:"languages"`
	TemplateDir      string            `toml:"template_dir"`
	Pages            map[string]string // what TemplateDir holds, by file
	PagesDir         string            // where it is
	RetryAfterJitter time.Duration     `toml:"retry_after_jitter" range:"0s to 1m"`
	CORSOrigins      Origins           `toml:"cors_origins"` // whose pages may read; none, or "*" alone
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
	Confirmed    Class `toml:"confirmed"` // no rejection: the response to a repeated order, which was placed
	Duplicate    Class `toml:"duplicate"`
	Denied       Class `toml:"denied"`
	Unidentified Class `toml:"unidentified"`
	Room         Class `toml:"room"`
	UnknownSKU   Class `toml:"unknown_sku"`
	BadRequest   Class `toml:"bad_request"`
	Unavailable  Class `toml:"unavailable"`
}

// Envelope is the shop's own form of an answer, in JSON.
type Envelope struct {
	Status int `toml:"status" unit:"HTTP status" range:"200 to 599"`
	// a template of $code $message $reason $detail $request_id $retry_after $sku
	Body string `toml:"body"`
}

// Class is the answer to one class of rejections.
type Class struct {
	Status     int           `toml:"status" unit:"HTTP status"`    // 400 to 599; of confirmed 200 to 599
	Code       int           `toml:"code" unit:"code of the shop"` // for $code
	RetryAfter time.Duration `toml:"retry_after" range:"0s to 1h"` // 0 = the header is left out
	Redirect   string        `toml:"redirect"`                     // a path or URL for browsers (303); "" = none
}

func defaultResponses() Responses {
	return Responses{
		Format:           "auto",
		Languages:        []string{"zh-CN", "en"},
		RetryAfterJitter: 2 * time.Second,
		CORSOrigins:      Origins{},
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
			Room:         Class{Status: 403, Code: 40304},
			UnknownSKU:   Class{Status: 404, Code: 40400},
			BadRequest:   Class{Status: 400, Code: 40000},
			Unavailable:  Class{Status: 503, RetryAfter: 3 * time.Second, Code: 50300},
		},
	}
}

func (s *Responses) check(r *report) {
	s.checkLanguages(r)
	r.Origins("responses.cors_origins", s.CORSOrigins)
	if r.Filled("responses.envelope.body", s.Envelope.Body) {
		r.Variables("responses.envelope.body", s.Envelope.Body, "code", "message", "reason", "detail",
			"request_id", "retry_after", "sku")
	}
	for _, c := range s.classes() {
		if c.class == &s.Classes.Confirmed {
			between(r, "responses.classes.confirmed.status", c.class.Status, 200, 599)
		} else if c.class.Status < 400 || c.class.Status > 599 {
			r.Fail("responses.classes."+c.name+".status", "%d is not the status of a rejection; write 400 to 599, or "+
				"responses.format = \"envelope\" for a 200", c.class.Status)
		}
		c.class.check(r, "responses.classes."+c.name)
	}
}

type namedClass struct {
	name  string
	class *Class
}

func (s *Responses) classes() (all []namedClass) {
	table := reflect.ValueOf(&s.Classes).Elem()
	for i := range table.NumField() {
		class, _ := table.Field(i).Addr().Interface().(*Class)
		all = append(all, namedClass{table.Type().Field(i).Tag.Get("toml"), class})
	}
	return all
}

func (c *Class) check(r *report, at string) {
	if c.Redirect == "" {
		return
	}
	_, isURL := webURL(c.Redirect)
	path := strings.HasPrefix(c.Redirect, "/") && !strings.HasPrefix(c.Redirect, "//")
	if !isURL && !path || strings.ContainsFunc(c.Redirect, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		r.Fail(at+".redirect", "%q is neither a path nor a URL; write it like \"/sold-out.html\"", c.Redirect)
	}
}

// Bounds of a folder of pages, so that a slip of the path cannot read a whole disk into memory.
const (
	maxPage  = 64 << 10 // bytes of one file
	maxPages = 200      // files
)

// readPages reads the templates and languages of template_dir: what ends in .html or .toml, and does not begin with a
// dot. A relative path starts from the configuration's folder.
func (s *Responses) readPages(r *report, folder string) {
	const key = "responses.template_dir"
	if s.TemplateDir == "" {
		return
	}
	s.PagesDir = resolvePath(folder, s.TemplateDir)
	entries, err := os.ReadDir(s.PagesDir)
	if err != nil {
		r.Fail(key, "open %s: %s; write the path of a folder that sluice may read", s.PagesDir, readCause(err))
		return
	}
	s.Pages = map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".html") && !strings.HasSuffix(name, ".toml") {
			continue
		}
		path := resolvePath(s.PagesDir, name)
		text, err := readFile(path, maxPage)
		switch {
		case err != nil:
			r.Fail(key, "open %s: %s; make it a file that sluice may read", path, readCause(err))
		case len(text) > maxPage:
			r.Fail(key, "%s is larger than 64KiB; a rejection page must be smaller", path)
		case len(s.Pages) == maxPages:
			r.Fail(key, "%s holds more than %d pages; name the folder of the pages alone", s.PagesDir, maxPages)
			return
		}
		s.Pages[name] = string(text)
	}
}

// SamePages reports whether both have the same pages of their own.
func (s *Responses) SamePages(other *Responses) bool { return maps.Equal(s.Pages, other.Pages) }

// checkLanguages leaves a language that may have a file in template_dir to the reader of that folder.
func (s *Responses) checkLanguages(r *report) {
	if len(s.Languages) == 0 {
		r.Fail("responses.languages", "is empty; write \"zh-CN\", \"en\" or both")
	}
	known := []string{"zh-CN", "en"}
	for i, language := range s.Languages {
		if s.TemplateDir == "" || slices.Contains(known, language) {
			r.OneOf(Element("responses.languages", i), language, known...)
		}
	}
	r.Unique(s.Languages, func(i int) string { return Element("responses.languages", i) })
}
