package auth

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestJWT_CachedTokenExpires(t *testing.T) {
	j := newTestJWT(t, JWTOptions{Algorithm: "HS256", Key: secret, Remember: 100})
	token := signed(t, jwt.SigningMethodHS256, []byte(secret), nil, goodClaims())
	for _, c := range []struct {
		at   int64
		want bool
	}{{0, true}, {59, true}, {60, false}, {0, true}} {
		if _, fault := j.Claim(token, "sub", noon.Add(time.Duration(c.at)*time.Second)); (fault == 0) != c.want {
			t.Errorf("after %d s: %v, want %v", c.at, fault, c.want)
		}
	}
}

func TestTokenCache_IsBounded(t *testing.T) {
	m := newTokenCache(100)
	size := func() (n int) {
		for i := range m {
			for j := range m[i] {
				if m[i][j].Load() != nil {
					n++
				}
			}
		}
		return n
	}
	for i := range 10_000 {
		key := digest(sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		m.store(&key, map[string][]byte{"sub": {1}}, noon.Unix()+1+int64(i))
		if m.claims(&key, noon.Unix()) == nil {
			t.Fatalf("token %d is not stored", i)
		}
		if m.claims(&key, noon.Unix()+1+int64(i)) != nil {
			t.Fatalf("token %d is valid after its expiry", i)
		}
	}
	if n := size(); n != 100 {
		t.Errorf("%d tokens are kept, want 100", n)
	}
}

func TestJWT_CachedTokenDoesNotAllocate(t *testing.T) {
	j := newTestJWT(t, JWTOptions{Algorithm: "HS256", Key: secret, Remember: 100})
	token := append([]byte("Bearer "), signed(t, jwt.SigningMethodHS256, []byte(secret), nil, goodClaims())...)
	if n := testing.AllocsPerRun(100, func() { j.Claim(token, "sub", noon) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkJWT(b *testing.B) {
	r, e := rsaPair(b, 2048), edPair(b)
	for _, c := range []struct {
		algorithm, key string
		method         jwt.SigningMethod
		with           any
	}{
		{"HS256", secret, jwt.SigningMethodHS256, []byte(secret)},
		{"RS256", r.public, jwt.SigningMethodRS256, r.private},
		{"EdDSA", e.public, jwt.SigningMethodEdDSA, e.private},
	} {
		for _, remember := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/remember=%d", c.algorithm, remember), func(b *testing.B) {
				j := newTestJWT(b, JWTOptions{Algorithm: c.algorithm, Key: c.key, Remember: remember})
				token := signed(b, c.method, c.with, nil, goodClaims())
				b.ReportAllocs()
				for b.Loop() {
					if _, fault := j.Claim(token, "sub", noon); fault != 0 {
						b.Fatal("not accepted")
					}
				}
			})
		}
	}
}
