package cache

import (
	"testing"
	"time"
)

// RFC 9213, section 2.2: CDN-Cache-Control stands in the place of Cache-Control and Expires, if it is valid.
func TestCDNCacheControl_GoesBeforeCacheControl(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		kept   bool
	}{
		"keeps what Cache-Control forbids": {"Cache-Control: no-store\nCDN-Cache-Control: max-age=60", true},
		"keeps what has expired":           {"Expires: 0\nCDN-Cache-Control: max-age=60", true},
		"forbids what Cache-Control keeps": {"Cache-Control: max-age=60\nCDN-Cache-Control: no-store", false},
		"private":                          {"Cache-Control: max-age=60\nCDN-Cache-Control: private, max-age=60", false},
		"max-age 0":                        {"Cache-Control: max-age=60\nCDN-Cache-Control: max-age=0", false},
		"no integer":                       {"Cache-Control: max-age=60\nCDN-Cache-Control: max-age=\"a\"", false},
		"parameters":                       {"Cache-Control: no-store\nCDN-Cache-Control: max-age=60;x=1", true},
		"unknown names":                    {"Cache-Control: no-store\nCDN-Cache-Control: x, max-age=60", true},
		"in capitals it is not valid":      {"Cache-Control: no-store\nCDN-Cache-Control: Max-Age=60", false},
		"broken it is not valid":           {"Cache-Control: no-store\nCDN-Cache-Control: max-age=60, &", false},
		"empty it is not there":            {"Cache-Control: no-store\nCDN-Cache-Control: ", false},
		"the last of two lines counts as well": {"Cache-Control: max-age=60\nCDN-Cache-Control: " +
			"max-age=60\nCDN-Cache-Control: no-store", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.says(200, c.header, "one")
			d.want(t, "one", 1, "/p")
			if c.kept {
				d.want(t, "one", 1, "/p")
			} else {
				d.want(t, "one", 2, "/p")
			}
		})
	}
}

// RFC 9111, section 5.1: of a list the first member counts, and what is no number does not.
func TestAge_OfAListIsTheFirst(t *testing.T) {
	for age, kept := range map[string]bool{
		"Age: 3600": false, "Age: 3600, 0": false, "Age: 0, 3600": true, "Age: 3600\nAge: 0": false, "Age: abc": true,
		"Age: 99999999999999999999": false,
	} {
		d := open(t)
		d.says(200, "Cache-Control: max-age=600\n"+age, "one")
		d.want(t, "one", 1, "/p")
		d.pass(10 * time.Millisecond)
		asked := 2
		if kept {
			asked = 1
		}
		d.want(t, "one", asked, "/p")
	}
}
