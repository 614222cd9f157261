package admin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed web
var embedded embed.FS

// Dashboard is the page for the operator on duty: the files of admin/web, as they are served. They hold no secret, and
// are given to every client; what they show comes from the API, which asks for a token. It is safe for concurrent use.
type Dashboard struct{ files map[string]asset }

// asset is one file, plain and packed.
type asset struct {
	kind            string // of its content
	plain, packed   []byte
	etag, packedTag string
}

// dashboardPolicy lets the page load what this origin has, and ask no other server for anything. No script and no style
// is in the page itself, so that a name which a client chose (a SKU, a serial, a user) can never become one.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
	"data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// dashboardFiles are the page's own.
func dashboardFiles() fs.FS {
	files, err := fs.Sub(embedded, "web")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return files
}

// NewDashboard packs the files.
func NewDashboard() *Dashboard {
	d, files := &Dashboard{files: map[string]asset{}}, dashboardFiles()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if plain, packed := strings.CutSuffix(name, ".gz"); packed && err == nil {
			name = plain
			text, err = unpack(text)
		}
		d.files["/"+name] = pack(name, text)
		return err
	})
	if err != nil {
		panic("BUG: what is embedded cannot be read: " + err.Error())
	}
	d.files["/"] = d.files["/index.html"]
	return d
}

// unpack reads what is embedded packed: a large file that is never edited.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func pack(name string, text []byte) asset {
	sum := sha256.Sum256(text)
	a := asset{kind: mime.TypeByExtension(path.Ext(name)), plain: text, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	switch path.Ext(name) { // not what the machine believes
	case ".js":
		a.kind = "text/javascript; charset=utf-8"
	case ".json":
		a.kind = "application/json"
	case ".svg":
		a.kind = "image/svg+xml"
	case "":
		a.kind = "text/plain; charset=utf-8"
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("BUG: packing into memory: " + err.Error())
	}
	a.packed, a.packedTag = b.Bytes(), `"`+hex.EncodeToString(sum[:8])+`-gzip"`
	return a
}

// Before answers for the page's files, and leaves everything else to next. A nil Dashboard has no files. The page
// learns from /access.json whether it has to ask for a token.
func (d *Dashboard) Before(token bool, next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	access := pack("access.json", fmt.Appendf(nil, "{\"token\": %t}\n", token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := d.files[r.URL.Path]
		if r.URL.Path == "/access.json" {
			a, ok = access, true
		}
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		a.serve(w, r)
	})
}

// serve has browsers ask each time, and answers with the content only when it has changed: after an upgrade the page
// and the API are of one version.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	text, tag, h := a.plain, a.etag, w.Header()
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		text, tag = a.packed, a.packedTag
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", dashboardPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.kind)
	_, _ = w.Write(text) // a client that has gone needs no answer
}
