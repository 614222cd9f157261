package server

import "encoding/binary"

// class is a set of roles that a byte may play. One look-up answers for all of them.
type class uint8

const (
	tokenByte  class = 1 << iota // RFC 9110, section 5.6.2
	symbolByte                   // a token byte that CGI may turn into "_": neither letter, digit nor "-"
	targetByte                   // may stand in a target whatever follows: 0x21-0x7e but for "%" and "#"
	hostByte                     // a letter, digit, "-", ".", "_" or "=": what names of hosts are made of
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
		if c >= 0x21 && c <= 0x7e && c != '%' && c != '#' {
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
	table['='] |= hostByte
	return table
}

// checkText finds the first byte that must not stand in a field value. It checks eight bytes at a time, and byte by
// byte only where one of them is not plain ASCII text: HTAB, UTF-8, or a byte to reject.
func checkText(b []byte) Rule {
	n := 0 // bytes that are plain
	for n+8 <= len(b) && plainWord(b[n:]) {
		n += 8
	}
	if n > 0 && n+8 > len(b) && plainWord(b[len(b)-8:]) {
		return fine
	}
	for _, c := range b[n:] {
		if classes[c]&textByte == 0 {
			return controlRule(c)
		}
	}
	return fine
}

// plainWord reports whether the next eight bytes are 0x20 to 0x7e. Taking 0x20 from a lower byte, or adding 1 to
// 0x7f, sets its top bit; borrows and carries can only come from bytes that set theirs.
func plainWord(b []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(b)
	return (w|(w-ones*0x20)|(w+ones))&tops == 0
}

// controlRule is the rule that a control character breaks.
func controlRule(c byte) Rule {
	switch c {
	case 0:
		return nulByte
	case '\r':
		return bareCR
	}
	return controlByte
}
