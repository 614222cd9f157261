package config

import (
	"strings"
	"testing"
)

func TestSettleWebhook_MistakesNameTheirKey(t *testing.T) {
	for text, want := range map[string]string{
		`url = "ftp://shop.example"`:        "settle.webhook.url: cannot be read",
		`url = "https://:443/x"`:            "settle.webhook.url: cannot be read",
		`url = "https://shop.example/#top"`: "settle.webhook.url: cannot be read",
		`url = "https://me:pa55@shop"`:      "settle.webhook.url: holds a user",
		`url = "https://shop.example"`:      "settle.webhook.url: needs a database",
		`url = "http://shop.example"`:       "settle.webhook.key_file: is empty",
		`key_file = "no-such-file"`:         "settle.webhook.key_file: ",
		`batch = 0`:                         "settle.webhook.batch: ",
		`batch = 1001`:                      "settle.webhook.batch: ",
		`timeout = "99ms"`:                  "settle.webhook.timeout: ",
		`timeout = "61s"`:                   "settle.webhook.timeout: ",
		`retries = 3`:                       "settle.webhook.retries: ",
	} {
		_, err := Parse("config.toml", []byte(whole("[settle.webhook]\n"+text+"\n")), environment)
		if err == nil || !strings.Contains(err.Error(), ":2: "+want) && !strings.Contains(err.Error(), ":1: "+want) {
			t.Errorf("%s: %v: want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pa55") {
			t.Errorf("%s: the error shows the password: %v", text, err)
		}
	}
}
