package server

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// These are the rules once more, slow and on whole strings, to be compared with the parser.

var (
	requestLineRE = regexp.MustCompile("^([!#$%&'*+\\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP/1\\.([01])$")
	absoluteRE    = regexp.MustCompile(`^(?i:https?)://([^/?]+)(.*)$`)
	hiddenRE      = regexp.MustCompile(`(?i)%0[0ad]`)
	fieldRE       = regexp.MustCompile("^([!#$%&'*+\\-.^_`|~0-9A-Za-z]+):((?:[\t\x20-\x7e]|[^\x00-\x7f])*)$")
	tokenRE       = regexp.MustCompile("^[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$")
	hostRE        = regexp.MustCompile(`^(?:([A-Za-z0-9._=-]+)|\[([0-9A-Fa-f:.]+)\])(?::([0-9]{1,5}))?$`)
	lengthRE      = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
	chunkRE       = regexp.MustCompile(`^([0-9A-Fa-f]{1,16})\r\n`)
	plainRE       = regexp.MustCompile(`[^a-z0-9-]`)
)

// referred is what the reference makes of a connection's bytes.
type referred struct {
	whole  []message
	bodies []string // each whole one's body with its framing
	begun  message  // what may be handed on of a request that does not end
	clean  bool     // nothing else follows
}

// reference splits data into the canonical requests it begins with.
func reference(limits Limits, data string) (out referred) {
	for data != "" {
		data = strings.TrimPrefix(data, "\r\n")
		if data == "" {
			break
		}
		head, rest, framing, ok := referenceHead(limits, data)
		if !ok {
			return out
		}
		n, content, ok := referenceBody(framing, rest)
		if !ok {
			out.begun = message{head, content}
			return out
		}
		out.whole = append(out.whole, message{head, content})
		out.bodies = append(out.bodies, rest[:n])
		if data = rest[n:]; framing.last {
			break
		}
	}
	out.clean = true
	return out
}

type referenceFraming struct {
	length  string
	chunked bool
	last    bool
}

func referenceHead(limits Limits, data string) (head, rest string, f referenceFraming, ok bool) {
	head, rest, ok = strings.Cut(data, "\r\n\r\n")
	if !ok || len(head)+4 > limits.Header {
		return head, rest, f, false
	}
	lines := strings.Split(latin(head), "\r\n")
	m := requestLineRE.FindStringSubmatch(lines[0])
	if m == nil || m[1] == "TRACE" || m[1] == "CONNECT" || len(m[2]) > limits.Target ||
		len(lines[0])+len("\r\n") > min(limits.Header, limits.Target+targetSlack) {
		return head, rest, f, false
	}
	fields := map[string][]string{}
	for _, line := range lines[1:] {
		p := fieldRE.FindStringSubmatch(line)
		if p == nil || referenceAlias(p[1]) {
			return head, rest, f, false
		}
		name, value := strings.ToLower(p[1]), strings.Trim(p[2], " \t")
		fields[name] = append(fields[name], value)
	}
	f, framed := referenceRules(limits, fields, m[3])
	return head + "\r\n\r\n", rest, f, framed && referenceTarget(m[1], m[2], m[3], fields["host"])
}

// latin makes a rune of each byte, since regular expressions see runes.
func latin(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func referenceTarget(method, target, minor string, host []string) bool {
	if minor == "0" && len(host) == 0 {
		host = nil
	} else if len(host) != 1 || !referenceHost(host[0]) {
		return false
	}
	if target == "*" {
		return method == "OPTIONS"
	}
	if m := absoluteRE.FindStringSubmatch(target); m != nil {
		if host == nil || !strings.EqualFold(m[1], host[0]) {
			return false
		}
		if target = m[2]; !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
	}
	return strings.HasPrefix(target, "/") && !strings.Contains(target, "#") && !hiddenRE.MatchString(target)
}

func referenceHost(host string) bool {
	m := hostRE.FindStringSubmatch(host)
	if m == nil {
		return false
	}
	if port, _ := strconv.Atoi(m[3]); port > 65535 {
		return false
	}
	if m[2] != "" {
		addr, err := netip.ParseAddr(m[2])
		return err == nil && addr.Is6()
	}
	return true
}

func referenceRules(limits Limits, fields map[string][]string, minor string) (f referenceFraming, ok bool) {
	for _, once := range []string{"content-length", "transfer-encoding", "content-type", "expect"} {
		if len(fields[once]) > 1 {
			return f, false
		}
	}
	if fields["trailer"] != nil {
		return f, false
	}
	for _, expect := range fields["expect"] {
		if !strings.EqualFold(expect, "100-continue") {
			return f, false
		}
	}
	for _, coding := range fields["transfer-encoding"] {
		f.chunked = true
		if !strings.EqualFold(coding, "chunked") || minor == "0" || fields["content-length"] != nil {
			return f, false
		}
	}
	for _, length := range fields["content-length"] {
		f.length = length
		if _, err := strconv.ParseInt(length, 10, 64); err != nil || !lengthRE.MatchString(length) {
			return f, false
		}
	}
	keep := false
	for _, option := range strings.Split(strings.Join(fields["connection"], ","), ",") {
		option = strings.ToLower(strings.Trim(option, " \t"))
		if option != "" && (!tokenRE.MatchString(option) || referenceListed(plainRE.ReplaceAllString(option, "-"),
			limits.Protected, endToEnd[:])) {
			return f, false
		}
		f.last = f.last || option == "close"
		keep = keep || option == "keep-alive"
	}
	f.last = f.last || minor == "0" && !keep
	return f, true
}

func referenceAlias(name string) bool {
	name = strings.ToLower(name)
	plain := plainRE.ReplaceAllString(name, "-")
	return plain != name && referenceListed(plain, hopFields[:])
}

func referenceListed(plain string, lists ...[]string) bool {
	for _, name := range slices.Concat(lists...) {
		name = strings.ToLower(name)
		if plain == name || strings.HasSuffix(name, "-") && strings.HasPrefix(plain, name) {
			return true
		}
	}
	return false
}

// referenceBody tells how long the body at the start of data is, and its content. When it breaks a rule or is cut
// short, the content is what comes before that.
func referenceBody(f referenceFraming, data string) (n int, content string, ok bool) {
	if !f.chunked {
		length, _ := strconv.ParseInt("0"+f.length, 10, 64)
		content, ok = referenceTake(data, length)
		return len(content), content, ok
	}
	for {
		m := chunkRE.FindStringSubmatch(data[n:])
		if m == nil {
			return 0, content, false
		}
		size, err := strconv.ParseInt(m[1], 16, 64)
		if err != nil {
			return 0, content, false
		}
		n += len(m[0])
		chunk, ok := referenceTake(data[n:], size)
		content += chunk
		if n += len(chunk); !ok || !strings.HasPrefix(data[n:], "\r\n") {
			return 0, content, false
		}
		if n += 2; size == 0 {
			return n, content, true
		}
	}
}

// referenceTake is the first n bytes of data, or all of it when there are fewer.
func referenceTake(data string, n int64) (string, bool) {
	if n > int64(len(data)) {
		return data, false
	}
	return data[:n], true
}
