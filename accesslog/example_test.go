package accesslog_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"sluice/accesslog"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

func Example() {
	start := time.Now()
	l, err := accesslog.New(accesslog.Options{
		Settings: accesslog.Settings{Output: "off", RejectedFirst: 20, RejectedEvery: 1000, Remember: 1 << 20},
		Stdout:   os.Stdout,
		Now:      func() int64 { return int64(time.Since(start)) },
		Log:      slog.Default(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.Start(func() accesslog.Totals { return accesslog.Totals{} })
	l.Log(metrics.AccessRecord{
		ID: []byte("r-1"), User: []byte("42"), SKU: []byte("1001"), Reason: reject.SoldOut, Status: 409,
	})
	l.Close()
	for _, text := range l.Find(accesslog.Question{User: "42", SKU: "1001"}, 1).Lines {
		var line struct {
			Status int
			Reason string
		}
		_ = json.Unmarshal(text, &line)
		fmt.Println(line.Status, line.Reason)
	}
	// Output: 409 sold_out
}
