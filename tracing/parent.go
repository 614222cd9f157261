package tracing

import (
	"encoding/hex"
	"fmt"
	"net/url"

	"sluice/proxy/metrics"
)

// parse reads a traceparent (W3C Trace Context, section 3.2): version, trace, parent and flags in lower-case
// hexadecimal. A malformed one is treated as missing.
func parse(field []byte, to *metrics.Trace) (known, sampled bool) {
	const whole = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(field) < whole || field[2] != '-' || field[35] != '-' || field[52] != '-' {
		return false, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], field[:2]) || version[0] == 0xff {
		return false, false
	}
	if version[0] == 0 && len(field) != whole || len(field) > whole && field[whole] != '-' {
		return false, false
	}
	var trace metrics.Trace
	if !lowerHex(trace.ID[:], field[3:35]) || !lowerHex(trace.Parent[:], field[36:52]) ||
		!lowerHex(flags[:], field[53:55]) {
		return false, false
	}
	if trace.ID == [16]byte{} || trace.Parent == [8]byte{} {
		return false, false
	}
	*to = trace
	return true, flags[0]&1 == 1
}

func lowerHex(to, text []byte) bool {
	for _, c := range text {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, text)
	return err == nil
}

// endpoint returns the whole URL of a collector.
func endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is no URL of a collector; write it like \"http://127.0.0.1:4318\"", text)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}
