package octets

// maxNotForwarded is the length of the longest name in notForwarded.
const maxNotForwarded = len("Proxy-Authorization")

// notForwarded are the fields about one connection alone (RFC 9110, section 7.6.1), those that the proxy writes itself,
// and Proxy, which CGI takes for a setting of its own. They are told apart by length first.
var notForwarded = func() (byLength [maxNotForwarded + 1][]string) {
	for _, name := range []string{"TE", "Via", "Host", "Proxy", "Expect", "Trailer", "Upgrade", "Connection", "Keep-Alive",
		"Content-Length", "HTTP2-Settings", "X-Forwarded-For", "Proxy-Connection", "X-Forwarded-Host", "Transfer-Encoding",
		"X-Forwarded-Proto", "Proxy-Authorization"} {
		byLength[len(name)] = append(byLength[len(name)], name)
	}
	return byLength
}()

// EndToEnd reports whether a field may travel on. A name with other punctuation for "-" counts as the same name, as
// servers behind CGI see it.
func EndToEnd(name []byte) bool {
	const own = "Sluice-"
	if len(name) >= len(own) && EqualFieldName(name[:len(own)], own) {
		return false
	}
	if len(name) > maxNotForwarded {
		return true
	}
	for _, hop := range notForwarded[len(name)] {
		if EqualFieldName(name, hop) {
			return false
		}
	}
	return true
}

// proxyFields speak of the way here, as one proxy or another does, beside X-Forwarded-*. Gunicorn cuts SCRIPT_NAME off
// the path before it routes.
var proxyFields = [...]string{
	"Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP",
	"Script-Name",
}

// FromProxy reports whether a field speaks of the way here: it is believed, and forwarded, from trusted proxies alone.
func FromProxy(name []byte) bool {
	const forwarded = "X-Forwarded-"
	if len(name) >= len(forwarded) && EqualFieldName(name[:len(forwarded)], forwarded) {
		return true
	}
	for _, f := range proxyFields {
		if EqualFieldName(name, f) {
			return true
		}
	}
	return false
}

// NamesFields reports whether a field is a Connection field that says more than whether the connection stays.
func NamesFields(name, value []byte) bool {
	return EqualFold(name, "Connection") && !EqualFold(value, "keep-alive") && !EqualFold(value, "close")
}
