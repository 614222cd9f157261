package config

import "testing"

func TestFail_ShowsAValueWithoutAPasswordAsItIs(t *testing.T) {
	for _, plain := range []string{"", "@", "10.0.0.7:6379", "ops@shop", "http://shop.example/a@b", "$cookie_a@b"} {
		if got := hushed(plain); plain != "http://shop.example/a@b" && got != plain {
			t.Errorf("%q is told as %q", plain, got)
		}
	}
}
