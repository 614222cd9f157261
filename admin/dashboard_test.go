package admin

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/proxy/reject"
)

// pageFiles are the files of the dashboard by name; vendored ones are not ours.
func pageFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(dashboardFiles(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dashboardFiles(), name)
		files[strings.TrimSuffix(name, ".gz")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func withPage(token string) http.Handler {
	return (&API{Dashboard: NewDashboard(), Token: token, Log: slog.New(slog.DiscardHandler)}).Handler()
}

// The files hold no secret and are given to everybody; what they show is not.
func TestDashboard_ThePageNeedsNoTokenAndItsNumbersDo(t *testing.T) {
	h := withPage("boss")
	files := []string{"/", "/access.json"}
	for name := range pageFiles(t) {
		files = append(files, "/"+name)
	}
	for _, name := range files {
		w := ask(h, "GET", name, "", nil)
		head := w.Header()
		if w.Code != 200 || head.Get("Content-Type") == "" || head.Get("ETag") == "" ||
			head.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", name, w.Code, head)
		}
		for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if head.Get(header) != want {
				t.Errorf("%s: %s is %q", name, header, head.Get(header))
			}
		}
		policy := head.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy+";", rule+";") {
				t.Errorf("%s: its policy lacks %s: %s", name, rule, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", name, policy)
		}
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{{"GET", "/api/v1/status", 401}, {"POST", "/", 401}, {"GET", "/web/index.html", 401},
		{"GET", "/../dashboard.go", 401}} {
		if w := ask(h, c.method, c.path, "", nil); w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
	for token, want := range map[string]string{"boss": "{\"token\": true}\n", "": "{\"token\": false}\n"} {
		if got := ask(withPage(token), "GET", "/access.json", "", nil).Body.String(); got != want {
			t.Errorf("with token %q: %q", token, got)
		}
	}
}

func TestDashboard_ThePageIsSentOnceAndPacked(t *testing.T) {
	h := withPage("")
	plain := ask(h, "GET", "/main.js", "", nil)
	packed := ask(h, "GET", "/main.js", "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip") })
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body.String() ||
		packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("packed it is another file: %v", err)
	}
	tag := plain.Header().Get("ETag")
	if tag == packed.Header().Get("ETag") {
		t.Error("two representations have one strong ETag")
	}
	again := ask(h, "GET", "/main.js", "", func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if again.Code != 304 || again.Body.Len() != 0 || again.Header().Get("ETag") != tag {
		t.Errorf("with its ETag: %d %v", again.Code, again.Header())
	}
	if other := ask(h, "GET", "/words.js", "",
		func(r *http.Request) { r.Header.Set("If-None-Match", tag) }); other.Code != 200 {
		t.Errorf("another file with that ETag: %d", other.Code)
	}
	sum, most := 0, 97<<10
	for name := range pageFiles(t) {
		sum += ask(h, "GET", "/"+name, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }).Body.Len()
	}
	if sum > most {
		t.Errorf("the page has %d bytes packed, more than %d", sum, most)
	}
}

// What is named is there, what is there is named, and nothing comes from elsewhere.
func TestDashboard_ThePageIsWholeAndAlone(t *testing.T) {
	files, named := pageFiles(t), map[string]bool{"index.html": true, "vendor/uplot/LICENSE": true}
	references := regexp.MustCompile(`(?:src|href)="([^"#]+)"|(?:from|import) "\./([^"]+)"|fetch\([` + "`" + `"]([^` +
		"`" + `"]+)[` + "`" + `"]\)`)
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	for name, text := range files {
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		for _, m := range references.FindAllStringSubmatch(text, -1) {
			to := m[1] + m[2] + m[3]
			switch {
			case to == "access.json", strings.HasPrefix(to, "api/v1/"):
			case strings.Contains(to, "${to}"):
				named[strings.Replace(to, "${to}", "en", 1)], named[strings.Replace(to, "${to}", "zh", 1)] = true, true
			default:
				named[to] = true
			}
		}
		if at := elsewhere.FindString(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")); at != "" {
			t.Errorf("%s names %s", name, at)
		}
		for _, never := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", "setAttribute(\"style\"",
			"localStorage.setItem(tokenKey"} {
			if strings.Contains(text, never) {
				t.Errorf("%s: %s", name, never)
			}
		}
	}
	if want, got := slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(named)); !slices.Equal(want, got) {
		t.Errorf("there are   %q\nnamed are   %q", want, got)
	}
	if inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:>| [^>]*[^"]>[^<])`).FindString(
		files["index.html"]); inline != "" {
		t.Errorf("within the page, which its policy forbids: %q", inline)
	}
}

func wordsOf(t *testing.T, text string) (words map[string]string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&words); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(text, "\n") - 2; lines != len(words) {
		t.Errorf("%d lines hold %d words: one is there twice", lines, len(words))
	}
	return words
}

// Both languages say the same, everything that is said is there, and nothing is there without a use.
func TestDashboard_ThePageSpeaksBothLanguages(t *testing.T) {
	files := pageFiles(t)
	en, zh := wordsOf(t, files["words.en.json"]), wordsOf(t, files["words.zh.json"])
	places := regexp.MustCompile(`\{\w+\}`)
	for key, text := range en {
		other, ok := zh[key]
		if !ok || strings.TrimSpace(text) == "" || strings.TrimSpace(other) == "" {
			t.Errorf("%s: %q, %q", key, text, other)
		}
		if a, b := places.FindAllString(text, -1),
			places.FindAllString(other, -1); !slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
			t.Errorf("%s: %q has %v, %q has %v", key, text, a, other, b)
		}
	}
	for key := range zh {
		if _, ok := en[key]; !ok {
			t.Errorf("%s is in Chinese alone", key)
		}
	}
	var sources strings.Builder
	for name, text := range files {
		if ext := path.Ext(name); !strings.HasPrefix(name, "vendor/") && (ext == ".js" || ext == ".html") {
			sources.WriteString(text)
		}
	}
	said := regexp.MustCompile(`data-say(?:-label)?="(\w+)"|say\("([\w.]+)"|(?:title|unit): "(\w+)"|row\("(\w+)"`)
	for _, m := range said.FindAllStringSubmatch(sources.String(), -1) {
		if key := m[1] + m[2] + m[3] + m[4]; en[key] == "" {
			t.Errorf("%q is said, and in no language", key)
		}
	}
	var beginnings []string // of keys that are put together
	for _, m := range regexp.MustCompile("(?:say|has)\\(`([\\w.]*)\\$").FindAllStringSubmatch(sources.String(), -1) {
		beginnings = append(beginnings, m[1])
	}
	for key := range en {
		if !strings.Contains(sources.String(), `"`+key+`"`) &&
			!slices.ContainsFunc(beginnings, func(b string) bool { return b != "" && strings.HasPrefix(key, b) }) &&
			!regexp.MustCompile(`^(confirm|release|requeue|refund)_(title|text)$`).MatchString(key) {
			t.Errorf("%s is never said", key)
		}
	}
}

// A reason without a name and a colour is shown by its own name, in a colour that follows from it (dashboard_laws.js);
// but a name and a colour that no reason has are mistakes.
func TestDashboard_NamesAndColoursAreThoseOfReasons(t *testing.T) {
	files := pageFiles(t)
	known := map[string]bool{reject.Admitted.String(): true}
	for _, reason := range reject.Reasons() {
		known[reason.String()] = true
	}
	named := 0
	for key := range wordsOf(t, files["words.en.json"]) {
		if name, ok := strings.CutPrefix(key, "reason_"); ok && !known[name] {
			t.Errorf("%s is the name of no reason", key)
		} else if ok {
			named++
		}
	}
	colours := regexp.MustCompile(`(?m)^  ([a-z_]+): \[`).FindAllStringSubmatch(files["shades.js"], -1)
	for _, c := range colours {
		if !known[c[1]] {
			t.Errorf("%s is the colour of no reason", c[1])
		}
	}
	if named < 30 || len(colours) < 30 {
		t.Errorf("%d reasons have names, %d colours", named, len(colours))
	}
}

func TestDashboard_LawsOfThePagesParts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir := t.TempDir()
	laws, err := os.ReadFile("testdata/dashboard_laws.js")
	if err != nil {
		t.Fatal(err)
	}
	files := pageFiles(t)
	files["dashboard_laws.js"], files["package.json"] = string(laws), `{"type": "module"}`
	for name, text := range files {
		if path.Dir(name) == "." {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), node, filepath.Join(dir, "dashboard_laws.js")).CombinedOutput()
	if held, wanted := bytes.Count(out, []byte("ok ")), bytes.Count(laws, []byte("await law(")); err != nil ||
		held != wanted {
		t.Errorf("%v, %d of %d laws hold:\n%s", err, held, wanted, out)
	}
}
