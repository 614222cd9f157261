package room

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What a client reads of itself is written by hand: as encoding/json writes it, with each of its fields and without.
func TestMe_IsWrittenAsJSON(t *testing.T) {
	for skipped := range reflect.TypeFor[me]().NumField() + 1 {
		var m me
		v, number := reflect.ValueOf(&m).Elem(), int64(7_000_000_000)
		for i := range v.NumField() {
			if i == skipped {
				continue
			}
			switch f := v.Field(i); f.Kind() {
			case reflect.Int64:
				f.SetInt(number + int64(i))
			case reflect.Pointer:
				n := number + int64(i)
				f.Set(reflect.ValueOf(&n))
			case reflect.Uint8: // no part of the JSON
			default:
				f.SetString("word")
			}
		}
		if m.Message != "" {
			m.Message = "back at \"20:30\" <b>\n二十点半"
		}
		want, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.appendJSON(nil)); got != string(want)+"\n" {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
