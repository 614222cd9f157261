package metrics

import (
	"encoding/hex"
	"testing"
)

func TestAppendTraceparent_IsLowerHex(t *testing.T) {
	trace := Trace{ID: [16]byte{0xab}, Upstream: [8]byte{0xcd}}
	want := "traceparent: 00-" + hex.EncodeToString(trace.ID[:]) + "-" + hex.EncodeToString(trace.Upstream[:]) + "-01\r\n"
	if got := string(AppendTraceparent(nil, &trace)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOrderOutcome_HasAName(t *testing.T) {
	for o, want := range map[OrderOutcome]string{
		OrderRejected: "released", OrderConfirmed: "confirmed", OrderUnknown: "unknown",
	} {
		if o.String() != want {
			t.Errorf("%d is %q, want %q", o, o, want)
		}
	}
}
