package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// update has the tests write what they saw into docs/conformance.md, instead of comparing it.
var update = flag.Bool("update", false, "write what is seen into docs/conformance.md")

const page = root + "/docs/conformance.md"

// part is what stands on the page between <!-- name --> and <!-- /name -->.
func part(t *testing.T, name string) (before, text, after string) {
	t.Helper()
	whole, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	before, text, begins := strings.Cut(string(whole), "<!-- "+name+" -->\n")
	text, after, ends := strings.Cut(text, "<!-- /"+name+" -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no part %q", page, name)
	}
	return before, text, after
}

// write sets a part of the page.
func write(t *testing.T, name, text string) {
	t.Helper()
	before, _, after := part(t, name)
	text = before + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->\n" + after
	if err := os.WriteFile(filepath.FromSlash(page), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPageShowsTheRequestsThatAreTried(t *testing.T) {
	_, old, _ := part(t, "wire")
	others, version := remembered(old), strings.Split(strings.SplitN(old, "\n", 2)[0], "; ")[0]
	if *update {
		if version = nginxVersion(); version == "" {
			t.Fatal("nginx is not installed: its columns cannot be written")
		}
		others = askNginx(t)
	}
	text := tables(version, others)
	switch {
	case *update:
		write(t, "wire", text)
	case text != old:
		t.Errorf("%s shows other requests than the tests try; write it anew: go test ./e2e -run %s -update", page, t.Name())
	case nginxVersion() == "":
		t.Log("nginx is not installed: its columns are those of the page")
	}
}

// remembered reads the columns of nginx back from the page.
func remembered(text string) map[string]comparison {
	all, title := map[string]comparison{}, ""
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			title = name
		}
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 6 {
			name := strings.TrimPrefix(cells[0], "| ")
			all[title+"/"+name] = comparison{cells[4], strings.Trim(strings.TrimSuffix(cells[5], " |"), "`–")}
		}
	}
	return all
}

// tables renders all chapters, with a summary in front whose first words are nginx's version.
func tables(version string, others map[string]comparison) string {
	var b strings.Builder
	total, refused, unclean, many := 0, 0, 0, 0
	for _, ch := range chapters {
		fmt.Fprintf(&b, "\n### %s\n\n| what | request | Sluice | its shop | nginx | its shop |\n| --- | --- | --- | --- | --- | --- |\n", ch.title)
		for _, c := range ch.cases {
			o := others[ch.title+"/"+c.name]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.name, code(shown(c.raw)), c.gate, code(c.shop), o.answer, code(o.shop))
			total++
			if c.shop == "" {
				refused++
			}
			if strings.Contains(o.shop, "NOT CANONICAL") {
				unclean++
			}
			if strings.Count(o.shop, ", ") > strings.Count(c.shop, ", ") {
				many++
			}
		}
	}
	return fmt.Sprintf("%s; %d requests. Sluice keeps %d of them from the shop; the others arrive canonical. Of nginx's, %d do not"+
		" arrive canonical, and %d as more requests than behind Sluice.\n%s", version, total, refused, unclean, many, b.String())
}

// code renders text in a cell of a table.
func code(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + text + "`"
}

// shown makes a raw request readable in one line.
func shown(raw string) string {
	size := len(raw)
	if size > 260 {
		raw = raw[:60]
	}
	text := strconv.Quote(raw)
	text = strings.NewReplacer(`\r\n`, "⏎", `\"`, `"`, `\\`, `\`, "|", "¦", "`", "'").Replace(text[1 : len(text)-1])
	if size > 260 {
		text += fmt.Sprintf("… (%d bytes)", size)
	}
	return text
}
