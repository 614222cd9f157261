package config

import (
	"net/netip"
	"os"
	"strings"
)

// maxNetworks bounds a file of addresses, in bytes: some 400,000 lines.
const maxNetworks = 8 << 20

// Networks reads a list of CIDRs and of files of them.
func (r *report) Networks(key string, list []string) (all []netip.Prefix) {
	for i, text := range list {
		path, isFile := strings.CutPrefix(text, "file:")
		switch {
		case !isFile:
			before := len(r.problems)
			if r.prefix(Element(key, i), text); len(r.problems) == before {
				all = append(all, netip.MustParsePrefix(text))
			}
		case !strings.HasPrefix(path, "/"):
			r.Fail(Element(key, i), "%q has no absolute path; write it like \"file:/etc/sluice/deny.txt\"", text)
		default:
			all = append(all, r.networksIn(Element(key, i), path)...)
		}
	}
	return all
}

// networksIn reads a file of one CIDR or address a line. What follows a # is a comment. The first line that is neither
// is a problem: a list that is read in part would let in whom it was to keep out.
func (r *report) networksIn(key, path string) (all []netip.Prefix) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for without end, at each reload
		r.Fail(key, "%s is not a regular file; write the path of one that sluice can read again and again", path)
		return nil
	}
	text, err := readFile(path, maxNetworks)
	switch {
	case err != nil:
		r.Fail(key, "open %s: %s; write the path of a file that sluice may read", path, readCause(err))
		return nil
	case len(text) > maxNetworks:
		r.Fail(key, "%s is larger than 8MiB; join its networks into larger ones", path)
		return nil
	}
	all, bad := parseNetworks(string(text))
	if bad.number > 0 {
		r.Fail(key, "%s:%d: %q is neither a CIDR nor an address; write it like \"192.0.2.0/24\"", path, bad.number,
			shortText(bad.text))
	}
	return all
}

// badLine is a line that cannot be read; number 0 = none.
type badLine struct {
	number int
	text   string
}

// byteOrderMark is what some editors put before a text (Unicode, section 23.8).
const byteOrderMark = "\ufeff"

func parseNetworks(text string) (all []netip.Prefix, bad badLine) {
	text = strings.TrimPrefix(text, byteOrderMark)
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		p, err := parseNetwork(line)
		if err != nil {
			return nil, badLine{n, line}
		}
		all = append(all, p)
	}
	return all, bad
}

// parseNetwork reads a CIDR, whatever its bits beyond its length are, or one address: lists come from elsewhere.
func parseNetwork(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, os.ErrInvalid
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

func shortText(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
