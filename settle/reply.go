package settle

import (
	"fmt"
	"strconv"
	"strings"
)

// reply reads a reply of Redis that has arrays and strings alone, as the protocol writes them. Its words share one
// text: go-redis would make two objects of each, and an entry has some twenty.
type reply struct {
	left string
	err  error // of the first fault; nothing is left then
}

// replyOf writes words as Redis does.
func replyOf(words []string) reply {
	var text []byte
	for _, word := range words {
		text = append(strconv.AppendInt(append(text, '$'), int64(len(word)), 10), "\r\n"...)
		text = append(append(text, word...), "\r\n"...)
	}
	return reply{left: string(text)}
}

// count reads how many items an array ('*'), or how many bytes a string ('$') has. An item takes at least a byte.
func (r *reply) count(kind byte) (n int) {
	if r.left == "" || r.left[0] != kind {
		return r.fail()
	}
	for i, c := range []byte(r.left[1:]) {
		digit := int(c) - '0'
		switch {
		case 0 <= digit && digit <= 9 && n <= len(r.left):
			n = 10*n + digit
			continue
		case i == 0 || !strings.HasPrefix(r.left[1+i:], "\r\n") || n > len(r.left)-i-3:
			return r.fail()
		}
		r.left = r.left[i+3:]
		return n
	}
	return r.fail()
}

// word reads a string.
func (r *reply) word() string {
	n := r.count('$')
	word, rest := r.left[:n], r.left[n:]
	if !strings.HasPrefix(rest, "\r\n") {
		r.fail()
		return ""
	}
	r.left = rest[2:]
	return word
}

// words reads strings to the end.
func (r reply) words() (all []string) {
	for r.left != "" {
		all = append(all, r.word())
	}
	return all
}

func (r *reply) fail() int {
	if r.err == nil {
		r.err = fmt.Errorf("the reply %.40q cannot be read", r.left)
	}
	r.left = ""
	return 0
}

// entries reads the reply to XRANGE: of each entry an id, and a list of names and values.
func (r *reply) entries() ([]Entry, error) {
	all := make([]Entry, r.count('*'))
	for i := range all {
		if r.count('*') != 2 {
			r.fail()
		}
		id := r.word()
		e, err := &all[i], r.err
		if err == nil {
			e.Position, err = parsePosition(id)
		}
		if err == nil {
			e.decode(r, r.count('*'))
			err = r.err
		}
		if err != nil {
			return nil, err
		}
	}
	return all, r.err
}
