// Verify tells orders that the gateway signed from others: "ok" or "bad" for each line of its input. A line holds
// signature, method, target, serial, SKU, quantity and deadline, with tabs between them; what follows is ignored.
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// verify reports whether signature is that of the six fields under one of the keys. Of a request r they are r.Method,
// r.RequestURI and, as text, the headers Idempotency-Key, Sluice-Sku, Sluice-Quantity and Sluice-Deadline.
func verify(keys []string, signature, method, target, serial, sku, quantity, deadline string) bool {
	text := strings.Join([]string{"v1", method, target, serial, sku, quantity, deadline}, "\n")
	good := false
	for _, key := range keys {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		want := "v1=" + hex.EncodeToString(mac.Sum(nil))
		if hmac.Equal([]byte(want), []byte(signature)) { // in constant time
			good = true
		}
	}
	return good
}

// secrets are the keys that count: the one that signs and, while it replaces another, that one.
func secrets() (keys []string) {
	for _, name := range []string{"SLUICE_SECRET", "SLUICE_SECRET_OLD"} {
		if key := os.Getenv(name); len(key) >= 16 { // anybody knows the empty key
			keys = append(keys, key)
		}
	}
	return keys
}

func main() {
	keys := secrets()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) >= 7 && verify(keys, f[0], f[1], f[2], f[3], f[4], f[5], f[6]) {
			fmt.Println("ok")
		} else {
			fmt.Println("bad")
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "read orders:", err)
		os.Exit(1)
	}
}
