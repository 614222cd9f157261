package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"sluice"
)

// ownName is the line of a file that names its shop.
var ownName = regexp.MustCompile(`(?m)^name = "shop-[0-9a-f]{4}"`)

func TestInit_FilesOfTwoShopsHaveTwoNames(t *testing.T) {
	names := map[string]bool{}
	for range 8 {
		out, err := command(t, "init", "-")
		if err != nil {
			t.Fatal(err)
		}
		names[ownName.FindString(out)] = true
	}
	if len(names) < 2 || names[""] {
		t.Errorf("the names of 8 files are %v", names)
	}
}

func TestInit_WritesInEachLanguageWhatCheckAccepts(t *testing.T) {
	for line, want := range map[string]string{
		"":                    starter,
		"--lang en":           starter,
		"--lang zh":           starterInChinese,
		"--lang zh-CN":        starterInChinese,
		"--full":              sluice.Reference,
		"--full --lang en":    sluice.Reference,
		"--full --lang zh":    sluice.ReferenceInChinese,
		"--lang zh-CN --full": sluice.ReferenceInChinese,
	} {
		out, err := command(t, append([]string{"init", "-"}, strings.Fields(line)...)...)
		name := ownName.FindString(out)
		if err != nil || name == "" || strings.Replace(out, name, `name = ""         `, 1) != want {
			t.Errorf("init %s: %v, and the text is another one: %s", line, err, name)
		}
		path := filepath.Join(t.TempDir(), "config.toml")
		if out, err = command(t, append([]string{"init", path}, strings.Fields(line)...)...); err != nil {
			t.Errorf("init %s: %v: %s", line, err, out)
		}
		if out, err = command(t, "check", path); err != nil || !strings.Contains(out, "the file is valid") {
			t.Errorf("init %s, check: %v: %s", line, err, out)
		}
		if _, err = command(t, "init", path); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("init over a file that exists: %v", err)
		}
	}
}

func TestInit_AnotherLanguageIsMisuse(t *testing.T) {
	_, err := command(t, "init", "-", "--lang", "fr")
	if err == nil || !strings.Contains(err.Error(), `"fr": it must be en, zh or zh-CN`) {
		t.Errorf("init --lang fr: %v", err)
	}
}

// Both starters have the same keys and values, but for the language that comes first, and their comments on the same
// lines. The references are compared in package config.
func TestInit_StartersDifferInTheirLanguageAlone(t *testing.T) {
	comment := regexp.MustCompile(`# .*`)
	bare := func(text string) string { return comment.ReplaceAllString(text, "#") }
	english := strings.Replace(bare(starterInChinese), `["zh-CN", "en"]`, `["en", "zh-CN"]`, 1)
	if bare(starter) != english {
		t.Errorf("without their comments they differ:\n%s\n%s", bare(starter), bare(starterInChinese))
	}
	for _, c := range comment.FindAllString(starterInChinese, -1) {
		if !strings.ContainsFunc(c, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%q has no Chinese character", c)
		}
	}
}
