package settler

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// webhookBody is what one request tells, as JSON: docs/settlement-reference.md.
type webhookBody struct {
	SKU        string          `json:"sku"`
	Position   string          `json:"position"` // of the last change
	Whole      bool            `json:"whole,omitempty"`
	Total      int64           `json:"total"`
	Held       int64           `json:"held"`
	Sold       int64           `json:"sold"`
	State      string          `json:"state"`
	Changes    []webhookChange `json:"changes"`
	Unreadable string          `json:"unreadable,omitempty"` // fields of an entry, quoted
}

type webhookChange struct {
	Serial   string        `json:"serial"`
	Status   ledger.Status `json:"status"`
	Quantity int64         `json:"quantity"`
	User     string        `json:"user"`
	Time     int64         `json:"time"` // Unix ms; 0 = not known
	Epoch    int64         `json:"epoch"`
	Version  int64         `json:"version"`
}

// bodies are the requests of a batch, each of at most some changes, in the ledger's order. Changes of the same order
// are all among them. A batch without an order has one request, for its numbers.
func bodies(b settle.Batch, most int) ([][]byte, error) {
	records := b.Records
	if !b.Whole {
		records = nil
		for _, e := range b.Entries {
			records = append(records, e.Records...)
		}
	}
	all := make([][]byte, 0, 1+len(records)/most)
	for first := true; first || len(records) > 0; first = false {
		n := min(most, len(records))
		text, err := json.Marshal(bodyOf(b, records[:n]))
		if err != nil {
			return nil, fmt.Errorf("write the changes of %q: %w", b.SKU, err)
		}
		all, records = append(all, text), records[n:]
	}
	return all, nil
}

func bodyOf(b settle.Batch, records []settle.Record) webhookBody {
	to := webhookBody{SKU: sqlstore.Text(b.SKU), Position: b.To.Position.String(), Whole: b.Whole, Total: b.To.Total,
		Held: b.To.Held, Sold: b.To.Sold, State: sqlstore.Text(b.To.State), Changes: make([]webhookChange, len(records))}
	for i, r := range records {
		to.Changes[i] = webhookChange{Serial: sqlstore.Text(r.Serial), Status: r.Status, Quantity: r.Quantity,
			User: sqlstore.Text(r.User), Time: r.At, Epoch: r.Epoch, Version: r.Ver}
	}
	for _, c := range b.Conflicts {
		to.Unreadable = c.Entry
	}
	return to
}

// signature is the value of the header Sluice-Webhook-Signature.
func signature(key, body []byte, now time.Time) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%d.%s", now.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", now.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
