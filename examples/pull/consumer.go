// Command pull takes orders that wait from Sluice at its own pace, makes them, and says what became of each:
// docs/queue.md. The unit of each order is held already.
//
//	SLUICE_URL=http://127.0.0.1:8090 SLUICE_TOKEN=… go run ./examples/pull
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

// order is what take hands out; there are more fields.
type order struct {
	SKU      string    `json:"sku"`
	Serial   string    `json:"serial"`
	Receipt  string    `json:"receipt"`
	Deadline time.Time `json:"deadline"`
	Body     []byte    `json:"body"`
}

type outcome struct {
	SKU     string  `json:"sku"`
	Serial  string  `json:"serial"`
	Receipt string  `json:"receipt"`
	Outcome string  `json:"outcome"`
	Answer  *answer `json:"answer,omitempty"`
}

type answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

func main() {
	for {
		var taken struct{ Orders []order }
		if err := call("take", map[string]any{"n": 20, "lease": "30s"}, &taken); err != nil {
			log.Print(err) // nothing was taken, or the lease ends by itself
		}
		outcomes := []outcome{}
		for _, o := range taken.Orders {
			outcomes = append(outcomes, place(o))
		}
		for len(outcomes) > 0 {
			var done any
			err := call("settle", map[string]any{"orders": outcomes}, &done) // may be repeated: it is done once
			if err == nil {
				break
			}
			log.Print(err)
			time.Sleep(time.Second)
		}
		if len(taken.Orders) == 0 {
			if os.Getenv("SLUICE_ONCE") != "" {
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
}

// place makes an order in the shop: never after its deadline, and once for each serial.
func place(o order) outcome {
	if time.Now().After(o.Deadline) {
		return outcome{o.SKU, o.Serial, o.Receipt, "again", nil} // certainly not made
	}
	// INSERT INTO orders (serial, …) … ON CONFLICT (serial) DO NOTHING
	text := fmt.Sprintf(`{"order":%q}`, o.Serial)
	return outcome{o.SKU, o.Serial, o.Receipt, "confirmed",
		&answer{201, map[string]string{"Content-Type": "application/json"}, []byte(text)}}
}

func call(what string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", os.Getenv("SLUICE_URL")+"/api/v1/queue/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("SLUICE_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", what, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
