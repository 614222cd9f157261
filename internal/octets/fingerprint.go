package octets

// Fingerprint is a hash of parts, in 64 bits (FNV-1a): the same on all instances.
type Fingerprint uint64

// NewFingerprint is that of no parts.
func NewFingerprint() Fingerprint { return 14695981039346656037 }

// AddString adds a part.
func (t *Fingerprint) AddString(b string) {
	for i := range len(b) {
		*t = (*t ^ Fingerprint(b[i])) * 1099511628211
	}
	*t = (*t ^ 0xff) * 1099511628211 // a byte that ends each part
}

// AddNumber adds a part of eight bytes.
func (t *Fingerprint) AddNumber(n int64) {
	for i := range 8 {
		*t = (*t ^ Fingerprint(byte(n>>(8*i)))) * 1099511628211
	}
}
