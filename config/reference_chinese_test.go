package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

const (
	inChinese      = "config.zh-CN.toml"
	maxColumns     = 120
	columnsOfHan   = 2
	exampleEnglish = "; e.g. "
	exampleChinese = "；例如 "
)

// facts are what a comment shares with its translation: values, variables, code, pages and numbers.
var facts = regexp.MustCompile("\"[^\"]*\"|`[^`]*`|" + `\$[a-z_][a-z_.]*|docs/[a-z0-9-]+|[0-9]+`)

// divided is one line of a reference as code and comment. A key that is commented out is code; so is the name in front
// of what a row says. "" = no comment.
func divided(line string) (code, said string) {
	start, rest := "", line
	if inner := regexp.MustCompile(`^#   [A-Za-z_]+\.[a-z_]+: `).FindString(line); inner != "" {
		return inner, line[len(inner):]
	}
	if after, commented := strings.CutPrefix(line, "#"); commented {
		var any map[string]any
		if _, err := toml.Decode(after, &any); err != nil || len(any) == 0 {
			return "#", after
		}
		start, rest = "#", after
	}
	var quote rune
	for i, r := range rest {
		switch {
		case quote == 0 && r == '#':
			return start + rest[:i+1], rest[i+1:]
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		}
	}
	return line, ""
}

// displayWidth is how wide a line is where a Chinese character takes two columns.
func displayWidth(line string) int {
	wide := 0
	for _, r := range line {
		if r >= 0x2e80 {
			wide++
		}
	}
	return utf8.RuneCountInString(line) + wide*(columnsOfHan-1)
}

// untranslated says where chinese is not english with other comments. The first line that is missing ends it.
func untranslated(english, chinese string) (faults []string) {
	want, got := strings.Split(english, "\n"), strings.Split(chinese, "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) {
			return append(faults, fmt.Sprintf("%s:%d: %q is not in config.toml: delete it", inChinese, i+1, got[i]))
		}
		code, said := divided(want[i])
		if i >= len(got) {
			return append(faults, fmt.Sprintf("config.toml:%d: %q is not in %s: write it there, with its comment in Chinese",
				i+1, want[i], inChinese))
		}
		chineseCode, translated := divided(got[i])
		if code != chineseCode {
			return append(faults, fmt.Sprintf("%s:%d: %q, but config.toml has %q: copy the line, with its comment in Chinese",
				inChinese, i+1, chineseCode, code))
		}
		if fault := unlike(said, translated); fault != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: %s; config.toml says:%s", inChinese, i+1, fault, said))
		}
		if n := displayWidth(got[i]); n > maxColumns && displayWidth(want[i]) <= maxColumns {
			faults = append(faults, fmt.Sprintf("%s:%d: %d columns, more than %d", inChinese, i+1, n, maxColumns))
		}
	}
	return faults
}

// unlike says what a translation lacks; "" = nothing.
func unlike(said, translated string) string {
	said, example, _ := strings.Cut(said, exampleEnglish)
	translated, exampleThere, _ := strings.Cut(translated, exampleChinese)
	if (said == "") != (translated == "") {
		return "a comment is missing or too many"
	}
	if example != exampleThere {
		return fmt.Sprintf("the comment must end with %s%s", exampleChinese, example)
	}
	if said != "" && !strings.ContainsFunc(translated, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return "the comment has no Chinese character"
	}
	for _, fact := range facts.FindAllString(said, -1) {
		if !strings.Contains(translated, fact) {
			return "the comment lacks " + fact
		}
	}
	return ""
}

func TestReferenceInChinese_DiffersInItsCommentsAlone(t *testing.T) {
	text, err := os.ReadFile("../" + inChinese)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range untranslated(referenceText(t), string(text)) {
		t.Error(fault)
	}
	for _, page := range regexp.MustCompile(`docs/[\w.-]+\.md`).FindAllString(string(text), -1) {
		if _, err := os.Stat("../" + page); err != nil {
			t.Errorf("%s names %s, which is not there", inChinese, page)
		}
	}
}

func TestReferenceInChinese_FaultsAreSeen(t *testing.T) {
	const english = `# Every key.

a = "#" # at most 5 of "x"; e.g. "y"
# b = 1 # docs/x.md
#   b.c: two; e.g. 2
d = 1
`
	const chinese = `# 全部。

a = "#" # 最多 5 个 "x"；例如 "y"
# b = 1 # 见 docs/x.zh-CN.md
#   b.c: 二；例如 2
d = 1
`
	if faults := untranslated(english, chinese); len(faults) > 0 {
		t.Errorf("a translation has faults: %q", faults)
	}
	for _, c := range []struct{ old, new, want string }{
		{"a = \"#\"", "a = \"##\"", "copy the line"},
		{"# b = 1", "# b = 2", "copy the line"},
		{"# b = 1", "b = 1", "copy the line"},
		{"b.c: ", "b.d: ", "copy the line"},
		{"# b = 1 # 见 docs/x.zh-CN.md\n", "", "copy the line"},
		{"d = 1\n", "d = 1\ne = 1\n", `"e = 1", but config.toml has ""`},
		{"d = 1\n", "d = 1\n\n", "is not in config.toml"},
		{"d = 1\n", "", `"", but config.toml has "d = 1"`},
		{"\nd = 1\n", "", "is not in config.zh-CN.toml"},
		{"d = 1", "d = 1 # 多余", "copy the line"},
		{" # 最多 5 个 \"x\"；例如 \"y\"", "", "copy the line"},
		{"# 全部。", "#", "missing"},
		{"全部。", "Every key.", "no Chinese character"},
		{"\"y\"", "\"z\"", `end with ；例如 "y"`},
		{"5 个", "6 个", "lacks 5"},
		{"x.zh", "y.zh", "lacks docs/x"},
		{"全部。", strings.Repeat("全", maxColumns/columnsOfHan), "more than 120"},
	} {
		broken := strings.Replace(chinese, c.old, c.new, 1)
		if faults := strings.Join(untranslated(english, broken), "\n"); !strings.Contains(faults, c.want) {
			t.Errorf("%q for %q: %q, want %q", c.new, c.old, faults, c.want)
		}
	}
}
