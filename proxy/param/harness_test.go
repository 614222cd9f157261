package param

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/server"
)

const (
	jsonType = "Content-Type: application/json\r\n"
	formType = "Content-Type: application/x-www-form-urlencoded\r\n"
	partType = "Content-Type: multipart/form-data; boundary=b0\r\n"
)

// parseHead parses the head of a request with these fields, each with its CRLF.
func parseHead(fields string) (*server.Request, error) {
	raw := "POST / HTTP/1.1\r\nHost: s\r\n" + fields + "\r\n"
	x, err := server.Read(raw, netip.Addr{}, server.Limits{Header: 16 << 10, Target: 1 << 10})
	if err != nil {
		return nil, err
	}
	return x.Request(), nil
}

// newSource is a request with these fields and this body.
func newSource(t testing.TB, fields, body string) *Source {
	t.Helper()
	head, err := parseHead(fields)
	if err != nil {
		t.Fatalf("%q: %v", fields, err)
	}
	return &Source{
		Head: head, Body: []byte(body), BodyRead: true, Host: []byte("shop"), RequestID: []byte("r-1"),
		ClientAddr: netip.MustParseAddr("203.0.113.9"),
	}
}

func compile(t testing.TB, text string, names ...string) *Variable {
	t.Helper()
	v, err := Compile(text, names)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &v
}

// result writes what a lookup returned: a value, "missing", or the fault.
func result(value []byte, fault Fault) string {
	d := fault.Detail
	switch fault.Reason {
	case reject.Admitted:
		if len(value) == 0 {
			return "missing"
		}
		return string(value)
	case reject.Ambiguous:
		return strings.TrimSuffix("ambiguous "+d.Cause.String()+" "+d.Operand, " ")
	case reject.BadRequest:
		return strings.TrimSuffix("bad "+d.Cause.String()+" "+d.Operand, " ")
	}
	return "unexpected reason"
}

// lookup is what variable finds.
func lookup(t testing.TB, variable, query, fields, body string) string {
	t.Helper()
	s := newSource(t, fields, body)
	s.Query = []byte(query)
	return result(compile(t, variable).Value(s))
}
