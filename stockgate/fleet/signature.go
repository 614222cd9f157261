package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// unsigned stands in place of a signature where the fleet has no secret.
const unsigned = "-"

// signature is that of a change of this name, which ends at a time of Redis' clock in ms; name "" = a task. The text
// says what is changed, by whom and when.
func (f *Fleet) signature(name, text string, ends int64) string {
	if !f.Signs() {
		return unsigned
	}
	return f.digest("change", name, text, strconv.FormatInt(ends, 10))
}

// digest is a keyed hash of parts, which no other parts have.
func (f *Fleet) digest(parts ...string) string {
	mac := hmac.New(sha256.New, f.options.Secret)
	fmt.Fprintf(mac, "sluice fleet %q %q", f.options.Name, parts)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// isTask reports whether an entry of this name and number is a task: its name is its number.
func (*Fleet) isTask(name string, number int64) bool { return name == strconv.FormatInt(number, 10) }
