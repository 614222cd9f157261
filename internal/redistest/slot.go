package redistest

// SlotCount is how many slots a cluster has.
const SlotCount = 16384

// Slot is the slot of the keys with a tag, as redisconn.Tag finds it: CRC16 (XMODEM), as the Redis Cluster
// Specification says.
func Slot(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % SlotCount
}
