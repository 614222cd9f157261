package octets

import (
	"bytes"
	"strconv"
	"time"
)

// PreferredWait reads wait=20 in a Prefer header (RFC 7240, section 4.3), in seconds, at most most; 0 = it is not said.
func PreferredWait(prefer []byte, most time.Duration) time.Duration {
	for len(prefer) > 0 {
		var item []byte
		item, prefer = Cut(prefer, ',')
		item, _ = Cut(item, ';') // its parameters say nothing of the time
		if text, ok := bytes.CutPrefix(Trim(item), []byte("wait=")); ok {
			if n, err := strconv.ParseUint(string(text), 10, 16); err == nil {
				return min(time.Duration(n)*time.Second, most)
			}
		}
	}
	return 0
}
