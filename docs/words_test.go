package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns       = 120
	maxSentenceWords = 20 // on average, of a page
)

// otherWords say what the glossary has a term for, or name no actor. Words that have a plain meaning, too, such as
// "line" and "place", are not among them.
var otherWords = regexp.MustCompile(`(?i)\b(refus\w*|nobody|whoever|somebody|turn(s|ed)? away|say no|let(s|ting)? ` +
	`(them |it )?(through|in)\b` +
	`|ladders?|rungs?|glances?|latch\w*|rosters?|desks?|haste|strangers?|oracles?|crew|sampler|left alone|leave alone` +
	`|deeds?|dismiss\w*|fates?|shoppers who|who comes|who asks|who wins|the turn of|stand-in|pace[sd]? ` +
	`of|loudest|hears?|tells? of)\b`)

// asWritten are pages that are generated or hold a patch.
var asWritten = []string{"configuration.md", "licences.md", "adding-a-limit.md"}

var (
	fence    = regexp.MustCompile("(?sm)^```.*?^```$")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	span     = regexp.MustCompile("`[^`\n]*`")
	target   = regexp.MustCompile(`\]\([^)]*\)`)
	sentence = regexp.MustCompile(`[.!?]["')]*(\s|$)`)
)

// manual is the pages that a user reads, without their code.
func manual(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	for _, name := range []string{"../README.md", "../README.zh-CN.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	for name, text := range all {
		all[name] = comment.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	}
	return all
}

func TestPages_UseTheWordsOfTheGlossary(t *testing.T) {
	for name, text := range manual(t) {
		if slices.Contains(asWritten, name) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "    ") {
				continue // code
			}
			for _, word := range otherWords.FindAllString(span.ReplaceAllString(line, "``"), -1) {
				t.Errorf("%s: %q in prose line %d: %s", name, word, i+1, line)
			}
		}
	}
}

// Readers search for these.
func TestPages_HaveTheWordsOfTheField(t *testing.T) {
	all := manual(t)
	text := strings.ToLower(all["../README.md"])
	for _, word := range []string{"rate limit", "reject", "circuit breaker", "graceful reload", "troubleshooting",
		"reverse proxy"} {
		if !strings.Contains(text, word) {
			t.Errorf("README.md does not say %q", word)
		}
	}
}

func TestPages_AreNarrow(t *testing.T) {
	for name, text := range manual(t) {
		if slices.Contains(asWritten, name) {
			continue
		}
		for _, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "|") && utf8.RuneCountInString(target.ReplaceAllString(line, "]()")) > maxColumns {
				t.Errorf("%s: wider than %d columns: %s", name, maxColumns, line)
			}
		}
	}
}

func TestPages_HaveShortSentences(t *testing.T) {
	for name, text := range manual(t) {
		if slices.Contains(asWritten, name) || strings.HasSuffix(name, ".zh-CN.md") {
			continue
		}
		if words, sentences := count(text); sentences > 0 && words > maxSentenceWords*sentences {
			t.Errorf("%s: %d words in %d sentences, %.1f on average", name, words, sentences, float64(words)/float64(sentences))
		}
	}
}

// count counts the words and sentences of paragraphs and lists. Tables, headings and indented code are not counted.
func count(text string) (words, sentences int) {
	var prose []string
	for _, line := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#"), strings.HasPrefix(line, "    "):
			prose = append(prose, "\n")
		case trimmed == "" || regexp.MustCompile(`^([-*]|\d+\.) `).MatchString(trimmed):
			prose = append(prose, "\n", regexp.MustCompile(`^([-*]|\d+\.) (\[ \] )?`).ReplaceAllString(trimmed, ""))
		default:
			prose = append(prose, trimmed)
		}
	}
	for _, paragraph := range strings.Split(strings.Join(prose, " "), "\n") {
		paragraph = span.ReplaceAllString(target.ReplaceAllString(paragraph, "]"), "x")
		for _, s := range sentence.Split(strings.TrimSpace(paragraph), -1) {
			if n := len(strings.Fields(s)); n > 0 {
				words, sentences = words+n, sentences+1
			}
		}
	}
	return words, sentences
}

func TestCount_WordsAndSentences(t *testing.T) {
	if words, sentences := count("# A\n\nOne two. Three `x y`\nfour.\n\n- five six\n- seven\n\n| a | b " +
		"|\n"); words != 8 || sentences != 4 {
		t.Errorf("%d words, %d sentences", words, sentences)
	}
}
