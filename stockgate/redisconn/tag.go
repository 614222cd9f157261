package redisconn

import "strings"

// Tag is what of a key decides its slot: keys of one tag are always in one slot.
func Tag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}
