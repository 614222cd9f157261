package auth

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// keys verify tokens. All have the type that the one algorithm needs.
type keys struct {
	only   any            // set where there is a single key; nil = there are several
	byName map[string]any // by kid; nil = the only key has no name, and a token's kid is ignored
}

// The least strength of keys (RFC 7518, sections 3.2 and 3.3).
const (
	minSecretSize = 32   // bytes
	minRSASize    = 2048 // bits
)

// readKeys reads keys for the algorithm. A public key as an HMAC secret, a private key and a weak key are errors: with
// them, an attacker could sign tokens. So is a key that no token could choose.
func readKeys(algorithm, text string) (keys, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case algorithm == "HS256":
		if strings.Contains(trimmed, "-----BEGIN") || strings.HasPrefix(trimmed, "{") {
			return keys{}, errors.New("HS256 wants a secret; this is a PEM or JSON file, whose content others may know")
		}
		if secret := strings.TrimRight(text, "\r\n"); len(secret) >= minSecretSize {
			return keys{only: []byte(secret)}, nil
		}
		return keys{}, fmt.Errorf("the secret has fewer than %d bytes; write a longer one, such as that of: openssl rand -hex "+
			"32, here and in the shop", minSecretSize)
	case algorithm != "RS256" && algorithm != "EdDSA":
		return keys{}, fmt.Errorf("algorithm %q is not known; HS256, RS256 and EdDSA are", algorithm)
	case strings.HasPrefix(trimmed, "{"):
		return readJWKS(algorithm, []byte(trimmed))
	}
	block, rest := pem.Decode([]byte(trimmed))
	if block == nil {
		return keys{}, errors.New("is neither PEM nor a JWKS")
	}
	if next, _ := pem.Decode(rest); next != nil && (next.Type != block.Type || next.Type != "CERTIFICATE") {
		return keys{}, errors.New("holds several keys in PEM; write one, or a JWKS, in which each has its kid")
	}
	key, err := readPEM(block)
	if err != nil {
		return keys{}, err
	}
	return keys{only: key}, checkKeyType(algorithm, key)
}

func readPEM(block *pem.Block) (key any, err error) {
	switch {
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("is a private key; only the public key is needed")
	case block.Type == "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	case block.Type == "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	}
	return x509.ParsePKIXPublicKey(block.Bytes)
}

// checkKeyType returns an error for a key that the algorithm cannot use or that is too weak.
func checkKeyType(algorithm string, key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if algorithm != "RS256" {
			return fmt.Errorf("%s wants an Ed25519 key; this is an RSA key", algorithm)
		}
		if k.N.BitLen() < minRSASize {
			return fmt.Errorf("the RSA key has %d bits, fewer than %d", k.N.BitLen(), minRSASize)
		}
		if k.E < 3 || k.E&1 == 0 {
			return fmt.Errorf("the RSA key has the exponent %d", k.E)
		}
		return nil
	case ed25519.PublicKey:
		if algorithm != "EdDSA" {
			return fmt.Errorf("%s wants an RSA key; this is an Ed25519 key", algorithm)
		}
		return nil
	}
	return fmt.Errorf("%s cannot use a key of type %T", algorithm, key)
}

// jwk has the members of a JSON web key (RFC 7517) that are read.
type jwk struct {
	Kty, Kid, Use, Alg, Crv, N, E, X, D string
}

// readJWKS reads the keys of a set that are for signatures by the algorithm. Other keys are skipped, since a set may
// serve several uses. A broken key for this use is an error.
func readJWKS(algorithm string, text []byte) (keys, error) {
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(text, &set); err != nil {
		return keys{}, fmt.Errorf("read the JWKS: %w", err)
	}
	found := keys{byName: map[string]any{}}
	n := 0
	for i, k := range set.Keys {
		if !k.verifies(algorithm) {
			continue
		}
		key, err := k.public()
		if err == nil {
			err = checkKeyType(algorithm, key)
		}
		if err != nil {
			return keys{}, fmt.Errorf("key %d of the JWKS: %w", i+1, err)
		}
		if k.Kid != "" {
			if found.byName[k.Kid] != nil {
				return keys{}, fmt.Errorf("key %d of the JWKS: kid %q stands twice", i+1, k.Kid)
			}
			found.byName[k.Kid] = key
		}
		found.only = key
		n++
	}
	switch {
	case n == 0:
		return keys{}, fmt.Errorf("the JWKS has no key for %s", algorithm)
	case n > 1 && len(found.byName) < n:
		return keys{}, errors.New("the JWKS has several keys, and one has no kid: no token could choose it; write a kid " +
			"for each")
	case n > 1:
		found.only = nil
	}
	if len(found.byName) == 0 {
		found.byName = nil
	}
	return found, nil
}

// verifies reports whether the key is for signatures by the algorithm (RFC 7517, section 4; RFC 8037 for OKP).
func (k *jwk) verifies(algorithm string) bool {
	if k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != algorithm {
		return false
	}
	if algorithm == "RS256" {
		return k.Kty == "RSA"
	}
	return k.Kty == "OKP" && k.Crv == "Ed25519"
}

func (k *jwk) public() (any, error) {
	if k.D != "" {
		return nil, errors.New("is a private key; only the public key is needed")
	}
	if k.Kty == "OKP" {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("x is not the %d bytes of an Ed25519 key", ed25519.PublicKeySize)
		}
		return ed25519.PublicKey(x), nil
	}
	n, err := base64.RawURLEncoding.DecodeString(k.N)
	if err != nil || len(n) == 0 {
		return nil, errors.New("n is not Base64")
	}
	e, err := base64.RawURLEncoding.DecodeString(k.E)
	if err != nil || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("e is not an exponent in Base64")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, nil
}
