package reject

import "time"

// Class is a group of reasons that are answered alike: [responses.<class>] of the configuration.
type Class uint8

// The classes of the configuration.
const (
	Busy Class = iota
	SoldOutClass
	NotStartedClass
	EndedClass
	PausedClass
	ConfirmedClass
	DuplicateClass
	DeniedClass
	UnidentifiedClass
	RoomClass
	UnknownSKUClass
	BadRequestClass
	Unavailable
	upstreamClass // a fault of the upstream: not configurable, the outcome of an order is unknown
	numClasses
)

var classNames = [numClasses]string{
	"busy", "sold_out", "not_started", "ended", "paused", "confirmed", "duplicate", "denied", "unidentified", "room",
	"unknown_sku", "bad_request", "unavailable", "upstream",
}

// String is the name in the configuration and of the files of own pages.
func (c Class) String() string { return classNames[c] }

// Answer is how a class is answered.
type Answer struct {
	Status     int           // 0 = 503
	Code       int           // $code of the envelope; 0 = 100 × Status
	RetryAfter time.Duration // 0 = no Retry-After
	Redirect   string        // path or URL; clients that want a page get 303 to it; "" = they get a page
}
