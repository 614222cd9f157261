package http1

import "encoding/binary"

// class is a set of roles that a byte may play. One look-up answers for all of them.
type class uint8

const (
	tokenByte  class = 1 << iota // RFC 9110, 5.6.2
	symbolByte                   // a token byte that servers behind us may turn into "_": neither letter, digit nor "-"
	targetByte                   // stands for itself in a target: 0x21-0x7e but for "%", "#" and "\"
	hexByte                      // a hexadecimal digit
	hostByte                     // a letter, digit, "-", "." or "_": what names of hosts are made of
	textByte                     // may stand in a field value: HTAB, SP, VCHAR, obs-text
)

var classes = classify()

func classify() (table [256]class) {
	for i := range table {
		c := byte(i)
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if letter || digit || c == '-' {
			table[c] |= tokenByte | hostByte
		}
		if digit || c|0x20 >= 'a' && c|0x20 <= 'f' {
			table[c] |= hexByte
		}
		if c >= 0x21 && c <= 0x7e && c != '%' && c != '#' && c != '\\' {
			table[c] |= targetByte
		}
		if c == '\t' || c >= 0x20 && c != 0x7f {
			table[c] |= textByte
		}
	}
	for _, c := range []byte("!#$%&'*+.^_`|~") {
		table[c] |= tokenByte | symbolByte
	}
	table['.'] |= hostByte
	table['_'] |= hostByte
	return table
}

// fold reports whether b is lower but for the case of its letters. lower holds no capitals.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(lower) {
		if b[i] != lower[i] && (b[i]|0x20 != lower[i] || lower[i] < 'a') {
			return false
		}
	}
	return true
}

// isToken reports whether b is a token of RFC 9110.
func isToken(b []byte) bool {
	for _, c := range b {
		if classes[c]&tokenByte == 0 {
			return false
		}
	}
	return len(b) > 0
}

// checkText finds the first byte that must not stand in a field value. It looks at eight bytes at a time, and byte by
// byte only where one of them is not plain ASCII text: an innocent HTAB or UTF-8, or what it looks for.
func checkText(b []byte) Kind {
	for i := 0; i+8 <= len(b); i += 8 {
		if !plainWord(b[i:]) {
			return checkBytes(b[i:])
		}
	}
	if len(b) >= 8 && plainWord(b[len(b)-8:]) {
		return fine
	}
	return checkBytes(b[len(b)&^7:])
}

// plainWord reports whether the next eight bytes are 0x20 to 0x7e. Taking 0x20 from a lower byte, or adding 1 to 0x7f,
// sets its top bit; borrows and carries can only come from bytes that set theirs.
func plainWord(b []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(b)
	return (w|(w-ones*0x20)|(w+ones))&tops == 0
}

func checkBytes(b []byte) Kind {
	for _, c := range b {
		if classes[c]&textByte == 0 {
			return controlKind(c)
		}
	}
	return fine
}

// controlKind names the kind of a control character.
func controlKind(c byte) Kind {
	switch c {
	case 0:
		return nulByte
	case '\r':
		return bareCR
	}
	return controlByte
}

// trim cuts optional white space, spaces and tabs, off both ends.
func trim(b []byte) []byte {
	from, to := inner(b)
	return b[from:to]
}

// inner tells where b's content begins and ends within its optional white space.
func inner(b []byte) (from, to int) {
	to = len(b)
	for from < to && (b[from] == ' ' || b[from] == '\t') {
		from++
	}
	for from < to && (b[to-1] == ' ' || b[to-1] == '\t') {
		to--
	}
	return from, to
}
