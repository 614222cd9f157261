package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// A settler is killed while the receiver fails. The next one sends every order of the gate, signed; then the stream is
// trimmed.
func TestSettlement_WebhookGetsEveryOrder(t *testing.T) {
	t.Parallel()
	const key = "the key of the webhook"
	var mu sync.Mutex
	sold, failing := map[string]bool{}, true
	tries := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		stamp, sum, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Sluice-Webhook-Signature"), "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(mac, "%s.%s", stamp, body)
		if sum != hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature %q is not that of %q", sum, body)
		}
		if tries++; failing {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var m struct {
			Changes []struct{ Serial, Status string }
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		for _, c := range m.Changes {
			if c.Status == "sold" {
				sold[c.Serial] = true
			}
		}
	}))
	t.Cleanup(hook.Close)
	redis, shop := redistest.Start(t), open(t, nil)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{redisAt(redis), fmt.Sprintf("settle.webhook.url = %q\nsettle.webhook.key_file = %q", hook.URL,
		filepath.Join(folder, "key"))}
	database := "sqlite:" + filepath.Join(folder, "settle.db")
	g := reserves(t, redis, 50, shop.setting(), keepsChanges)
	oldest := func() string {
		all := redis.Client.XRangeN(t.Context(), "sluice:shop:{1001}:q", "-", "+", 1).Val()
		if len(all) == 0 {
			t.Fatal("no change is in Redis")
		}
		return all[0].ID
	}
	first := oldest()
	s := settler(t, database, settings...)
	for i := range 5 {
		if a := g.ask("POST", "/api/seckill/1001/order", fmt.Sprintf("Cookie: uid=%d", i)); a.status != http.StatusOK {
			t.Errorf("order %d: %d %s", i, a.status, a.body)
		}
	}
	soon(t, "orders are settled, and the webhook is behind", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return tries > 0 &&
			strings.Contains(settle(t, "verify", "1001", "--config", s.file).out, "equal; 5 records, 5 units sold")
	})
	soon(t, "the metrics show the webhook", func() bool {
		text := s.scrape()
		return strings.Contains(text, "sluice_settler_webhook_requests_total{code=\"5xx\"} ") &&
			strings.Contains(text, "\nsluice_settler_behind_seconds{target=\"webhook\"} ") &&
			!strings.Contains(text, "\nsluice_settler_behind_seconds{target=\"webhook\"} 0\n")
	})
	status := settle(t, "status", "--config", s.file).out
	if !strings.Contains(status, "SENT TO") || !strings.Contains(status, "webhook") {
		t.Errorf("the status does not show the webhook: %s", status)
	}
	if now := oldest(); now != first {
		t.Errorf("the oldest change in Redis is %s: want %s", now, first)
	}
	s.mortal = true
	_ = s.process.Process.Kill()
	<-s.ended
	mu.Lock()
	failing = false
	mu.Unlock()
	s = settler(t, database, settings...)
	soon(t, "every order is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(sold) == 5
	})
	soon(t, "the stream is trimmed", func() bool {
		return redis.Client.XLen(t.Context(), "sluice:shop:{1001}:q").Val() == 1
	})
}
