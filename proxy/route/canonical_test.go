package route

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// liberties are what servers do with a path before they route. Each may be taken or not, in any order and repeatedly.
var liberties = []func(path string) string{
	func(p string) string { return string(octets.Unescape(nil, []byte(p))) },
	func(p string) string { // as routers do that split the path before they decode it
		p = strings.NewReplacer("%2f", "%\x002f", "%2F", "%\x002F").Replace(p)
		return strings.ReplaceAll(string(octets.Unescape(nil, []byte(p))), "\x00", "")
	},
	func(p string) string { return strings.ReplaceAll(p, `\`, "/") },
	func(p string) string { p, _, _ = strings.Cut(p, "?"); return p },
	func(p string) string { p, _, _ = strings.Cut(p, "#"); return p },
	func(p string) string { // parameters
		parts := strings.Split(p, "/")
		for i, part := range parts {
			parts[i], _, _ = strings.Cut(part, ";")
		}
		return strings.Join(parts, "/")
	},
	func(p string) string { // empty segments
		for strings.Contains(p, "//") {
			p = strings.ReplaceAll(p, "//", "/")
		}
		return p
	},
	func(p string) string { // "."
		for strings.Contains(p, "/./") {
			p = strings.ReplaceAll(p, "/./", "/")
		}
		if strings.HasSuffix(p, "/.") {
			p = p[:len(p)-1]
		}
		return p
	},
	func(p string) string { // ".."
		parts := strings.Split(p, "/")
		if i := slices.Index(parts, ".."); i > 1 {
			return strings.Join(slices.Delete(parts, i-1, i+1), "/")
		}
		return p
	},
	func(p string) string { // an authority, as RFC 3986 has it
		if rest, ok := strings.CutPrefix(p, "//"); ok {
			if i := strings.IndexAny(rest, "/?#"); i >= 0 {
				return "/" + strings.TrimPrefix(rest[i:], "/")
			}
		}
		return p
	},
	func(p string) string { // an authority, as WHATWG URL has it
		if rest := strings.TrimLeft(p, `/\`); len(p) > len(rest)+1 {
			if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
				return "/" + strings.TrimLeft(rest[i:i+1], `/\`) + rest[i+1:]
			}
		}
		return p
	},
	func(p string) string { return strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(p) },
}

// allReadings are what path becomes by every subset and order of the liberties.
func allReadings(path string) []string {
	all, known := []string{path}, map[string]bool{path: true}
	for i := 0; i < len(all); i++ {
		for _, liberty := range liberties {
			if p := liberty(all[i]); !known[p] {
				known[p] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// lenient is the first route that takes path for a server that ignores case or not, and a slash at the end or not.
func (t *Table) lenient(method, path string, fold, slash bool) (m Match) {
	for i := range t.entries {
		e := t.entries[i] // a copy
		p := path
		switch {
		case slash && !e.open && len(p) > 1:
			p = strings.TrimSuffix(p, "/")
		case slash && e.open && e.guard > Unguarded && strings.Count(p, "/") == len(e.segments):
			p += "/"
		}
		e.segments = slices.Clone(e.segments)
		for j, part := range strings.Split(p[min(1, len(p)):], "/") {
			if fold && j < len(e.segments) && !e.segments[j].capture && strings.EqualFold(part, e.segments[j].literal) {
				e.segments[j].literal = part
			}
		}
		if e.takesMethod([]byte(method)) && e.takesPath([]byte(p), &m.Captures) {
			m.Index = i
			return m
		}
	}
	return Match{Index: -1}
}

// unsafeReading returns a reading of path that takes the request to stock past its route, or from its route to another
// or other captures; "" when there is none.
func (t *Table) unsafeReading(method, path string) string {
	own := t.first([]byte(method), nil, []byte(path))
	plain := isPlain([]byte(path)) // but for the slash at its end
	for _, p := range allReadings(path) {
		for bits := range 4 {
			if plain && bits&1 > 0 {
				continue
			}
			m := t.lenient(method, p, bits&1 > 0, bits&2 > 0)
			switch {
			case t.guardsStock(own.Index):
				if t.guardsStock(m.Index) &&
					t.entries[m.Index].differsBySlash(&t.entries[own.Index].Pattern) && sameCaptures(own, m) {
					continue // the route of the other spelling
				}
				if m.Index != own.Index || !sameCaptures(own, m) {
					return p
				}
			case m.Index >= 0 && m.Index != own.Index && t.entries[m.Index].guard > Unguarded:
				return p
			}
		}
	}
	return ""
}

func sameCaptures(received, read Match) bool {
	for i, c := range received.Captures {
		if !bytes.Equal(c, read.Captures[i]) && !bytes.Equal(octets.Unescape(nil, c), read.Captures[i]) {
			return false
		}
	}
	return true
}

// tableOf makes a table of patterns. Those that begin with "!" guard stock, those with "?" their entry.
func tableOf(t testing.TB, texts ...string) *Table {
	t.Helper()
	var patterns []Pattern
	var guards []Guard
	for _, text := range texts {
		text, stock := strings.CutPrefix(text, "!")
		text, entry := strings.CutPrefix(text, "?")
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		guard := Unguarded
		if stock {
			guard = GuardsStock
		} else if entry {
			guard = GuardsEntry
		}
		patterns, guards = append(patterns, p), append(guards, guard)
	}
	return NewTable(patterns, guards)
}

// hostileTables are tables whose routes lie close to each other.
var hostileTables = [][]string{
	{"!/a/{sku}", "/"},
	{"!/a/b", "/"},
	{"!/{sku}/b", "/a/", "/"},
	{"/a/{x}", "!/a/{x}/{sku}", "/"},
	{"/a/", "!/a", "!/{x}", "/"},
	{"/a/b/", "!/a/", "/"},
	{"/A/b", "!/a/{sku}", "/b/{x...}", "!/b/{x}/a"},
	{"/a/b", "!/{sku}/b", "/"},
	{"!/a/{x...}", "/b", "/"},
	{"/b", "/a/a", "!/", "/a"},
	{"!/b/", "/b/a/{x}", "/"},
	{"!/{x}/{y}/a", "/{x}/{y}/{z}", "!/b"},
	{"!/a/{sku}/", "/b", "/"},
	{"!/a/{sku}/", "!/a/{sku}", "/"},
	{"/a", "!/{x}/{y...}", "/"},
	{"!/{x}.b", "/"},
	{"!/a/b{x}.", "/a/{y}", "/"},
	{"/a{x}/b", "!/{y}/b", "/"},
	{"!/a/{x}.b", "!/b{x}/{y...}", "/a/{x}", "/"},
	{"/A{x}.b/", "!/a{x}", "/"},
	{"?/a", "/"},
	{"/a/{x}", "?/a/{x}/{y}", "/"},
	{"?/{x}/b", "!/a/{sku}", "/"},
	{"?/a/", "/b", "/"},
	{"/b", "?/"},
	{"?/a/b", "?/a/{x}", "/"},
	{"/a/", "?/{x}.b", "!/{sku}"},
}

// randomPath strings parts together.
func randomPath(dice *rand.Rand, parts []string) string {
	path := "/"
	for range dice.IntN(9) {
		path += parts[dice.IntN(len(parts))]
	}
	return path
}

var pathAlphabets = [][]string{
	{"/", "/", ".", ";", `\`, "%", "2", "5", "f", "e", "A", "a", "b"},
	{"/", "/", ".", ";", `\`, "%", "2", "5", "f", "e", "A", "a", "b", "?", "#"},
	{"/", "/", "/", "a", "b", "A", "b/", ".", "..", ";", "%2f", "%2F", "%5c", "%3b", "%3f", "%23", "%2e", "%61", "%42"},
	{"/", "/", `\`, "a", "b", "a/", "b/a", ".", ";", "@", ":", "%09", "%2f", "%5c", "%250a", "?"},
	{"/", "a", "b", "a", "%252f", "%25", "25", "2f", "%2561", "%253b", ";", "%2525252f", "%%32f", "%62"},
}

func TestTable_ReadingThatReachesStockIsAmbiguous(t *testing.T) {
	var tables []*Table
	for _, texts := range hostileTables {
		tables = append(tables, tableOf(t, texts...))
	}
	dice := rand.New(rand.NewPCG(3, 4))
	unsafe, needless := 0, 0
	for i := range 12_000 {
		path, table := randomPath(dice, pathAlphabets[i%len(pathAlphabets)]), tables[dice.IntN(len(tables))]
		reading := table.unsafeReading("POST", path)
		_, detail := table.Match(Query{Method: []byte("POST"), Path: []byte(path)})
		switch rejected := detail.Cause == reject.PathNotCanonical; {
		case reading != "" && !rejected:
			t.Fatalf("%s is forwarded, and could be read as %s, by %v", path, reading, table)
		case reading != "":
			unsafe++
		case rejected && !nestedOrClimbs(path):
			needless++
		}
	}
	if unsafe < 700 || needless > unsafe/3 {
		t.Errorf("%d paths with an unsafe reading, %d rejected without one", unsafe, needless)
	}
}

// nestedOrClimbs reports a path that is rejected whatever it leads to.
func nestedOrClimbs(path string) bool {
	text, nested := decode(nil, []byte(path))
	return nested || bytes.Contains(text, []byte(".."))
}

// A path that is plain has no reading but itself.
func TestIsPlain_NoLibertyChangesThePath(t *testing.T) {
	dice, plain := rand.New(rand.NewPCG(5, 6)), 0
	for i := range 40_000 {
		path := randomPath(dice, pathAlphabets[i%len(pathAlphabets)])
		if !isPlain([]byte(path)) {
			continue
		}
		plain++
		if all := allReadings(path); len(all) > 1 || strings.ToLower(path) != path {
			t.Fatalf("%s is plain, and could be read as %q", path, all)
		}
	}
	if plain < 1000 {
		t.Errorf("only %d paths were plain", plain)
	}
}

func TestDecode_UndoesEscapesOfEscapes(t *testing.T) {
	for in, want := range map[string]struct {
		text   string
		nested bool
	}{
		"/a%20b": {"/a b", false}, "/%2f%5c": {`/\\`, false}, "/100%25": {"/100%", false}, "/%2531": {"/1", true},
		"/%252525252f": {`/\`, true}, "/%%32f": {`/\`, true}, "/%%34%31": {"/A", true}, "/%2%35": {"/%", true},
		"/%zz%4": {"/%zz%4", false}, "/%25%25": {"/%%", false}, "/%e5%95%86": {"/商", false},
	} {
		if text, nested := decode(nil, []byte(in)); string(text) != want.text || nested != want.nested {
			t.Errorf("decode(%q) = %q, %v, want %q, %v", in, text, nested, want.text, want.nested)
		}
	}
	dice := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		path := []byte(randomPath(dice, []string{"%", "2", "5", "3", "%25", "32", "f", "/"}))
		once, want := octets.Unescape(nil, path), path
		for last := ""; last != string(want); {
			last, want = string(want), octets.Unescape(nil, want)
		}
		text, nested := decode(nil, path)
		text = bytes.ReplaceAll(text, []byte(`\`), []byte("/"))
		if !bytes.Equal(text, want) || nested != !bytes.Equal(once, want) {
			t.Fatalf("decode(%s) = %s, %v; decoded until nothing changes it is %s", path, text, nested, want)
		}
	}
}

// Paths that leave as much open as they can cost one pass for each route that guards stock, and few steps of it.
func TestTable_HostilePathCostsFewStepsForEachRoute(t *testing.T) {
	table := tableOf(t, "!/a/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/a", "!/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/a")
	for _, part := range []string{
		"/", "/a", "/;", ";a", "%2f", "%252f", "%5ca", "/.", "/%3f", "a", "%2525", "%61", "/a;/.",
	} {
		path := []byte("/" + strings.Repeat(part, maxPath/len(part)-1))
		text, nested := decode(nil, path)
		examined := examine(text, nested)
		if len(text) > len(path) || examined.odd > maxOdd+1 || examined.odd > maxOdd != examined.unbounded {
			t.Errorf("%q: %d bytes became %d, of which %d are odd", part, len(path), len(text), examined.odd)
		}
		for i := range table.entries {
			steps := stepsOf(&table.entries[i], text)
			if limit := len(table.entries[i].segments) + 2 + maxOdd; !examined.unbounded && steps > limit {
				t.Errorf("%q: %d steps, at most %d", part, steps, limit)
			}
		}
	}
}

// stepsOf is couldTake that counts.
func stepsOf(e *entry, text []byte) (steps int) {
	for r := (readings{complete: 1}); len(text) > 0 && r != (readings{}); steps++ {
		separator, piece, rest := cutPiece(text)
		if r.taken(e, separator) {
			break
		}
		r.step(e, separator, piece)
		text = rest
	}
	return steps
}

func (t *Table) String() (s string) {
	for i := range t.entries {
		s += t.entries[i].text + " "
	}
	return s
}
