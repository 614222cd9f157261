package config

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// Bounds of a folder of pages, so that a slip of the path cannot read a whole disk into memory.
const (
	maxPage  = 64 << 10 // bytes of one file
	maxPages = 200      // files
)

// readPages reads the templates and languages of template_dir: what ends in .html or .toml, and does not begin with a dot.
// A relative path starts from the configuration's folder.
func (s *Responses) readPages(r *report, folder string) {
	const key = "responses.template_dir"
	if s.TemplateDir == "" {
		return
	}
	s.PagesDir = from(folder, s.TemplateDir)
	entries, err := os.ReadDir(s.PagesDir)
	if err != nil {
		r.fail(key, "open %s: %s; write the path of a folder that sluice may read", s.PagesDir, cause(err))
		return
	}
	s.Pages = map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".html") && !strings.HasSuffix(name, ".toml") {
			continue
		}
		path := from(s.PagesDir, name)
		text, err := readUpTo(path, maxPage)
		switch {
		case err != nil:
			r.fail(key, "open %s: %s; make it a file that sluice may read", path, cause(err))
		case len(text) > maxPage:
			r.fail(key, "%s is larger than 64KiB; a page that refuses should be small", path)
		case len(s.Pages) == maxPages:
			r.fail(key, "%s holds more than %d pages; name the folder of the pages alone", s.PagesDir, maxPages)
			return
		}
		s.Pages[name] = string(text)
	}
}

// SamePages reports whether both have the same pages of their own.
func (s *Responses) SamePages(other *Responses) bool { return maps.Equal(s.Pages, other.Pages) }

// checkLanguages leaves a language that may have a file in template_dir to whoever reads what is in it.
func (s *Responses) checkLanguages(r *report) {
	if len(s.Languages) == 0 {
		r.fail("responses.languages", "is empty; write \"zh-CN\", \"en\" or both")
	}
	known := []string{"zh-CN", "en"}
	for i, language := range s.Languages {
		if s.TemplateDir == "" || slices.Contains(known, language) {
			r.oneOf(element("responses.languages", i), language, known...)
		}
	}
	r.unique(s.Languages, func(i int) string { return element("responses.languages", i) })
}
