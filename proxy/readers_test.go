package proxy

import (
	"net/url"
	"slices"
	"strings"

	"sluice/internal/octets"
)

// shopReader is a model of how a shop reads a request. An order that it finds is another one where any of this differs.
type shopReader struct {
	name   string
	path   func(target string) (path string, ok bool) // decoded
	values func(query, form string) map[string]string // listed = a list or an object
	cookie func(header string) string                 // the user
}

// listed is the value of a name that is a list or an object.
const listed = "\x00list"

// shopReaders are the models. paramtest.Readings names the functions that they stand for.
var shopReaders = []shopReader{
	{"PHP, $_REQUEST", rfcPath, phpValues(true, true), phpCookie},
	{"PHP, $_POST", plainPath, phpValues(false, true), phpCookie},
	{"PHP, $_GET", plainPath, phpValues(true, false), phpCookie},
	{"Node, URL and qs of the query", whatwgPath, qsValues(true), firstCookie},
	{"Node, URL and qs of the body", whatwgPath, qsValues(false), firstCookie},
	{"Java, URI and getParameter", rfcPath, firstValues(true), firstCookie},
	{"Java, getServletPath and getParameter", servletPath, firstValues(true), firstCookie},
	{"Java, URI and then a front controller", func(target string) (string, bool) {
		path, ok := rfcPath(target)
		if !ok {
			return "", false
		}
		return whatwgPath(path)
	}, firstValues(true), firstCookie},
	{"Rack", plainPath, rackValues, firstCookie},
	{"Go", goPath, firstValues(false), firstCookie},
	{"Python, urlsplit and Flask", rfcPath, firstValues(true), lastCookie},
}

// pathOnly is a target without query and fragment.
func pathOnly(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		return target[:i]
	}
	return target
}

func plainPath(target string) (string, bool) {
	path, err := url.PathUnescape(pathOnly(target))
	return path, err == nil
}

// rfcPath is the path by RFC 3986.
func rfcPath(target string) (string, bool) {
	path := pathOnly(target)
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	return plainPath(path)
}

// whatwgPath is the path by WHATWG URL, relative to http://shop.
func whatwgPath(target string) (string, bool) {
	path := strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(pathOnly(target))
	if strings.HasPrefix(path, "//") {
		_, path, _ = strings.Cut(strings.TrimLeft(path, "/"), "/")
		path = "/" + path
	}
	return plainPath(withoutDots(path, "%2e"))
}

// withoutDots resolves dot segments; dot is another spelling of one.
func withoutDots(path, dot string) string {
	var kept []string
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		switch strings.ReplaceAll(strings.ToLower(part), dot, ".") {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		case ".":
		default:
			kept = append(kept, part)
			continue
		}
		if i == len(parts)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// servletPath is the path as Tomcat maps it.
func servletPath(target string) (string, bool) {
	parts := strings.Split(pathOnly(target), "/")
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(part, ";")
	}
	path, ok := plainPath(strings.Join(parts, "/"))
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return withoutDots(path, "."), ok
}

func goPath(target string) (string, bool) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return "", false
	}
	return u.Path, true
}

// unescaped leaves what is no escape as it stands.
func unescaped(text string) string { return string(octets.Unescape(nil, []byte(text))) }

// pairsOf splits a query or form.
func pairsOf(list string) (all [][2]string) {
	for field := range strings.SplitSeq(list, "&") {
		name, value, _ := strings.Cut(strings.ReplaceAll(field, "+", " "), "=")
		if name != "" {
			all = append(all, [2]string{unescaped(name), unescaped(value)})
		}
	}
	return all
}

// phpName is what php_register_variable makes of a name.
func phpName(name string) (folded string, list bool) {
	name, _, _ = strings.Cut(strings.TrimLeft(name, " "), "\x00")
	base, rest, bracket := strings.Cut(name, "[")
	if list = bracket && strings.Contains(rest, "]"); !list {
		base = name
	}
	return strings.NewReplacer(".", "_", " ", "_", "[", "_").Replace(base), list
}

func phpValues(get, post bool) func(query, form string) map[string]string {
	return func(query, form string) map[string]string {
		values := map[string]string{}
		for i, list := range []string{query, form} {
			if !(i == 0 && get || i == 1 && post) {
				continue
			}
			for _, pair := range pairsOf(list) {
				name, isList := phpName(pair[0])
				if values[name] = pair[1]; isList {
					values[name] = listed
				}
			}
		}
		return values
	}
}

func qsValues(ofQuery bool) func(query, form string) map[string]string {
	return func(query, form string) map[string]string {
		if !ofQuery {
			query = form
		}
		values := map[string]string{}
		for _, pair := range pairsOf(query) {
			name, list := pair[0], false
			if inner, ok := strings.CutPrefix(name, "["); ok && strings.Contains(inner, "]") {
				name, _, _ = strings.Cut(inner, "]")
			} else if i := strings.IndexAny(name, "[."); i > 0 {
				name, list = name[:i], true
			}
			if _, twice := values[name]; twice || list {
				pair[1] = listed
			}
			values[name] = pair[1]
		}
		return values
	}
}

func firstValues(queryFirst bool) func(query, form string) map[string]string {
	return func(query, form string) map[string]string {
		lists := []string{query, form}
		if !queryFirst {
			slices.Reverse(lists)
		}
		values := map[string]string{}
		for _, list := range lists {
			for _, pair := range pairsOf(list) {
				if _, known := values[pair[0]]; !known {
					values[pair[0]] = pair[1]
				}
			}
		}
		return values
	}
}

func rackValues(query, form string) map[string]string {
	values := map[string]string{}
	for _, list := range []string{query, form} {
		for _, pair := range pairsOf(list) {
			name := strings.TrimLeft(pair[0], "[]")
			if i := strings.IndexAny(name, "[]"); i >= 0 {
				if strings.Trim(name[i:], "]") != "" {
					pair[1] = listed
				}
				name = name[:i]
			}
			values[name] = pair[1]
		}
	}
	return values
}

// userCookies are the values of the cookies that fold makes user_id, in their order.
func userCookies(header string, fold func(name string) string) (all []string) {
	for pair := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if fold(name) == "user_id" {
			all = append(all, string(octets.Unescape(nil, octets.Unquote([]byte(value)))))
		}
	}
	return all
}

func phpCookie(header string) string {
	all := userCookies(header, func(name string) string {
		name, list := phpName(strings.TrimLeft(name, " \t\r\n\v\f"))
		if list {
			return ""
		}
		return name
	})
	return append(all, "")[0]
}

func firstCookie(header string) string {
	return append(userCookies(header, strings.TrimSpace), "")[0]
}

func lastCookie(header string) string {
	all := append([]string{""}, userCookies(header, strings.TrimSpace)...)
	return all[len(all)-1]
}
