package proxy

import (
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// Room is a waiting room. It answers from memory, but for what is said at its methods.
type Room interface {
	// Admits tells whether user may order sku at unixMS with this pass, or without one: Admitted; Room and what is wrong
	// with the pass; or SoldOut or Ended where the room is over.
	Admits(unixMS int64, sku, user, pass []byte) (reject.Reason, reject.Cause)

	// Joinable reports whether people who want sku may join now.
	Joinable(sku []byte) bool

	// Bypass is who needs no pass.
	Bypass() *RoomBypass

	// Used notes that user has placed an order. It does not wait.
	Used(user []byte)

	// Answer answers a question at one of the room's addresses. It may wait for a store, within a bound, and calls
	// q.Client.StepAside before. A client that waits for news is suspended.
	Answer(q *RoomQuestion) RoomAnswer
}

// RoomQuestion is a request at one of a room's addresses. Its bytes belong to the request.
type RoomQuestion struct {
	Action   []byte // what follows the room's own path: "", "me", "join", "pass", "draw", "verify"; any text
	Post     bool
	User     []byte // empty = the room's own path or its draw is asked, which are the same for all
	Signed   []byte // the client's ticket
	Pass     []byte
	Page     bool   // a browser asks for a page
	Language []byte // Accept-Language
	Query    []byte // of a page: back=/PATH
	Prefer   []byte // the header: wait=20 asks to wait for news
	Time     int64  // Unix ms of the shared clock
	Secure   bool   // the connection is TLS
	Client   server.Client
}

// RoomAnswer is the answer to a question.
type RoomAnswer struct {
	Suspended bool          // there is none yet, see server.Client; nothing else counts
	Rejection reject.Reason // not Admitted: the request is rejected for it, and nothing else counts
	Wait      time.Duration // of the rejection
	Status    int
	Type      string
	Body      []byte
	Tag, Mark string // an ETag of what is public, and what of it is looked for; "" = the answer is of this client alone
	Location  string
	Cookie    string // Set-Cookie; "" = none
}

const (
	ticketName = "sluice_room"  // the cookie of a ticket, which is sent to the room's addresses alone
	passName   = "sluice_pass_" // the cookie of a pass, and behind it the room
)

// RoomCookies are the names of the cookies of a room: of its ticket and its pass.
func RoomCookies(room string) (ticket, pass string) { return ticketName, passName + room }

// publicRoomAction reports an action that is answered without asking who the client is.
func publicRoomAction(action []byte) bool {
	return string(action) == "draw" || string(action) == "verify"
}
