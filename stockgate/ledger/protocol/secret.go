package protocol

import "crypto/rand"

// NewSecret makes a secret for a reserver that shares its orders with no other instance.
func NewSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return secret
}
