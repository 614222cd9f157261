package config

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

func TestPosition_EveryKeyHasTheLineItBeginsOn(t *testing.T) {
	tests := []struct {
		text string
		want keyLines
	}{
		{"a = 1\nb.c = 2\n", keyLines{"a": 1, "b": 2, "b.c": 2}},
		{"# x = 1\n\n[t] # [u]\n  k = '#' # k2 = 1\nl = 1", keyLines{"t": 3, "t.k": 4, "t.l": 5}},
		{"[a.b]\n[a]\nc = 1\n[ a . \"d.e\" ]\nf=1", keyLines{"a": 2, "a.b": 1, "a.c": 3, `a."d.e"`: 4, `a."d.e".f`: 5}},
		{"[[r]]\na=1\n[[r]]\n[r.s]\nb=1\n[[r.u]]\n[[r.u]]\nc=1\n[[r]]\n[[r.u]]", keyLines{
			"r": 1, "r[1]": 1, "r[1].a": 2, "r[2]": 3, "r[2].s": 4, "r[2].s.b": 5, "r[2].u": 6, "r[2].u[1]": 6, "r[2].u[2]": 7,
			"r[2].u[2].c": 8, "r[3]": 9, "r[3].u": 10, "r[3].u[1]": 10}},
		{"a = [ # one\n 1,\n\n [2,\n3], {x = 4,\ny.z = 5 # z\n} ]\nb = 6", keyLines{
			"a": 1, "a[1]": 2, "a[2]": 4, "a[2][1]": 4, "a[2][2]": 5, "a[3]": 5, "a[3].x": 5, "a[3].y": 6, "a[3].y.z": 6,
			"b": 8}},
		{"a = \"\"\"\n[x]\n\\\"\"\" = 1\"\"\"\"\nb = '''\n'' \\'''\nc = \"\\\"]\\\\\"\nd = 1", keyLines{"a": 1, "b": 4,
			"c": 6, "d": 7}},
		{"\"a\\tb\" = 1\n'c\\d' = 2\r\n\"\" = 3\r\ne = 1979-05-27 07:32:00Z\nf = -inf", keyLines{`"a\tb"`: 1, `"c\\d"`: 2,
			`""`: 3, "e": 4, "f": 5}},
		{"\xef\xbb\xbfa = {}\nb = []\nc = { d = {}, e = [[]] }", keyLines{"a": 1, "b": 2, "c": 3, "c.d": 3, "c.e": 3,
			"c.e[1]": 3}},
		{"", keyLines{}},
	}
	for _, test := range tests {
		var tree map[string]any
		if _, err := toml.Decode(test.text, &tree); err != nil {
			t.Fatalf("%q: %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, indexKeys(test.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
		if missing := withoutLine(tree, indexKeys(test.text), ""); missing != "" {
			t.Errorf("%q: no line for %s", test.text, missing)
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("a = [ # one\n 1,\n\n [2,\n3], {x = 4,\ny.z = 5 # z\n} ]\nb = 6")
	f.Add("[[r]]\na=1\n[[r]]\n[r.s]\nb=1\n[[r.u]]\nc = \"\"\"\n[x]\n\\\"\"\" = 1\"\"\"\"\nd = '''\n'''")
	f.Fuzz(func(t *testing.T, text string) {
		var tree map[string]any
		if _, err := toml.Decode(text, &tree); err != nil {
			return
		}
		if missing := withoutLine(tree, indexKeys(text), ""); missing != "" {
			t.Errorf("no line for %s", missing)
		}
	})
}

// withoutLine finds a part of a parsed file that the index does not know.
func withoutLine(v any, index keyLines, path string) string {
	if len(path) >= maxPath {
		return ""
	}
	if _, ok := index[path]; !ok && path != "" {
		return path
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if missing := withoutLine(value, index, joinKey(path, name)); missing != "" {
				return missing
			}
		}
	case []map[string]any:
		for i, value := range v {
			if missing := withoutLine(value, index, Element(path, i)); missing != "" {
				return missing
			}
		}
	case []any:
		for i, value := range v {
			if missing := withoutLine(value, index, Element(path, i)); missing != "" {
				return missing
			}
		}
	}
	return ""
}

func TestPosition_DeepNestingCostsNoMoreThanTheTextItIsWrittenIn(t *testing.T) {
	const deep = 60_000
	text := "a = " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "\nb = " + strings.Repeat("{b = ", deep) + "1"
	index := indexKeys(text)
	size := 0
	for path := range index {
		size += len(path)
	}
	if size > 4*len(text) {
		t.Errorf("an index of %d bytes for a text of %d", size, len(text))
	}
	if index["b"] != 2 || index["a[1][1]"] != 1 {
		t.Errorf("b is in line %d, a[1][1] in line %d", index["b"], index["a[1][1]"])
	}
}

func TestPosition_ParentOfAKeyIsTheTableAroundIt(t *testing.T) {
	for key, want := range map[string]string{
		"a": "", "a.b": "a", "a[2]": "a", "a[2].b": "a[2]", `a."b.c[1]"`: "a", `a."\"."`: "a", "": "",
	} {
		if got := parentKey(key); got != want {
			t.Errorf("Parent(%q) = %q, want %q", key, got, want)
		}
	}
}
