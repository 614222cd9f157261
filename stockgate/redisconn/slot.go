package redisconn

import "strings"

// slotCount is how many a cluster has.
const slotCount = 16384

// Slot is the slot of a key in a Redis Cluster, 0 to 16383: CRC16 (XMODEM) of what stands between the first brace and
// the next closing one, or of all of it where nothing does, as the Redis Cluster Specification says.
func Slot(key string) int {
	key = Tag(key)
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slotCount
}

// Tag is what of a key decides its slot: keys of one tag are always in one slot.
func Tag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}
