package proxy

import (
	"bytes"
	"fmt"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// Room is a waiting room. It answers from memory, but for what is said at its methods.
type Room interface {
	// Admits reports whether user may order sku at unixMS with this pass, or without one.
	Admits(unixMS int64, sku, user, pass []byte) bool

	// Used notes that user has placed an order. It does not wait.
	Used(user []byte)

	// Answer answers a question at one of the room's addresses. It may wait, for a store within a bound or for news, and
	// calls q.Client.StepAside before.
	Answer(q *RoomQuestion) RoomAnswer
}

// RoomQuestion is a request at one of a room's addresses. Its bytes belong to the request.
type RoomQuestion struct {
	Action   []byte // what follows the room's own path: "", "me", "join", "pass", "draw"; any text
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
	Client   RoomClient
}

// RoomClient is the connection of a question.
type RoomClient interface {
	Waiter
	StepAside()
}

// RoomAnswer is the answer to a question.
type RoomAnswer struct {
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
	roomPath   = "/.sluice/room/"
	roomTicket = "Sluice-Ticket" // where apps send a ticket
	roomPass   = "Sluice-Pass"   // likewise a pass; with an order it is not passed on
	ticketName = "sluice_room"   // the cookie of a ticket, which is sent to the room's addresses alone
	passName   = "sluice_pass_"  // the cookie of a pass, and behind it the room
)

// RoomCookies are the names of the cookies of a room: of its ticket and its pass.
func RoomCookies(room string) (ticket, pass string) { return ticketName, passName + room }

// boundRoom is a room, and how its routes find a user.
type boundRoom struct {
	Room
	path string
	pass string         // its cookie
	user param.Variable // of the first of its routes
}

// bindRooms gives each route its room.
func (p *Proxy) bindRooms() error {
	p.waitingRooms = map[string]*boundRoom{}
	if err := checkRooms(p.routes); err != nil {
		return err
	}
	for i := range p.routes {
		rt := &p.routes[i]
		if rt.Route.Room == "" {
			continue
		}
		room := p.Rooms[rt.Route.Room]
		if room == nil {
			return &RouteError{rt.Name, "room", fmt.Errorf("there is no room %q here: a new [[room]] needs a restart",
				rt.Route.Room)}
		}
		if p.waitingRooms[rt.Route.Room] == nil {
			_, pass := RoomCookies(rt.Route.Room)
			p.waitingRooms[rt.Route.Room] = &boundRoom{room, roomPath + rt.Route.Room, pass, rt.user}
		}
		rt.room = p.waitingRooms[rt.Route.Room]
	}
	return nil
}

// checkRooms wants the user of each route with a room to be known where tickets are given out, and to be the same on
// all routes of a room.
func checkRooms(routes []boundRoute) error {
	users := map[string]string{}
	for i := range routes {
		rt := &routes[i]
		if rt.Route.Room == "" {
			continue
		}
		if rt.user.Empty() || rt.Gate == route.Pass {
			return &RouteError{rt.Name, "room", fmt.Errorf("is of a user: write user, and another gate than \"pass\"")}
		}
		if err := knownWithoutRoute(rt, "a ticket"); err != nil {
			return &RouteError{rt.Name, "room", err}
		}
		if other, has := users[rt.Route.Room]; has && other != rt.User {
			return &RouteError{rt.Name, "room", fmt.Errorf("user = %q, but another route of the room has %q; write the same",
				rt.User, other)}
		}
		users[rt.Route.Room] = rt.User
	}
	return nil
}

// CompileRooms reports what New would find wrong with the rooms of routes; the error is a *RouteError.
func CompileRooms(routes []Route) error {
	bound, _, errs := bindRoutes(routes)
	if len(errs) > 0 {
		return nil // reported elsewhere
	}
	return checkRooms(bound)
}

// checkRoom rejects an order without a pass. A client that no limit applies to needs none.
func (p *Proxy) checkRoom(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	pass, fault := r.source.Header(roomPass)
	if fault.Reason == reject.Admitted && len(pass) == 0 {
		pass, fault = r.source.Cookie(r.route.room.pass)
	}
	if fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	if !r.route.room.Admits(p.sharedTime(r.now), r.buyer.sku, r.buyer.user, pass) {
		return rejection{Reason: reject.Room}
	}
	return rejection{}
}

// roomOf finds the room that a path asks for, and what follows it.
func (p *Proxy) roomOf(path []byte) (room *boundRoom, action []byte) {
	rest, ok := bytes.CutPrefix(path, []byte(roomPath))
	if !ok {
		return nil, nil
	}
	name, action := octets.Cut(rest, '/')
	return p.waitingRooms[string(name)], action
}

func (p *Proxy) isRoomPath(path []byte) bool {
	room, _ := p.roomOf(path)
	return room != nil
}

// answerRoom answers a question at one of a room's addresses.
func (p *Proxy) answerRoom(r *Request) rejection {
	head := &r.exchange.Request
	room, action := p.roomOf(head.Path())
	q := RoomQuestion{Action: action, Post: string(head.Method()) == "POST", Time: p.sharedTime(r.now),
		Page: reject.PrefersPage(head.Peek("Accept")), Language: head.Peek("Accept-Language"), Secure: r.conn.Secure(),
		Prefer: head.Peek("Prefer"), Query: head.Query(), Client: r.conn}
	if len(action) > 0 && string(action) != "draw" {
		if no := p.askWho(r, room, &q); no.Reason != reject.Admitted {
			return no
		}
	}
	a := room.Answer(&q)
	if a.Rejection != reject.Admitted {
		return rejection{Reason: a.Rejection, Wait: a.Wait}
	}
	p.writeRoom(r, &a)
	return rejection{}
}

// askWho finds the user, the ticket and the pass of a question.
func (p *Proxy) askWho(r *Request, room *boundRoom, q *RoomQuestion) rejection {
	r.source.ClientAddr = r.clientAddr()
	user, no := userBy(&room.user, &r.source)
	if no.Reason != reject.Admitted {
		return no
	}
	q.User = user
	for _, from := range []struct {
		to             *[]byte
		header, cookie string
	}{{&q.Signed, roomTicket, ticketName}, {&q.Pass, roomPass, room.pass}} {
		value, fault := r.source.Header(from.header)
		if fault.Reason == reject.Admitted && len(value) == 0 {
			value, fault = r.source.Cookie(from.cookie)
		}
		if fault.Reason != reject.Admitted {
			return rejected(fault)
		}
		*from.to = value
	}
	return rejection{}
}

func (p *Proxy) writeRoom(r *Request, a *RoomAnswer) {
	if a.Tag != "" {
		out := r.taggedResponse(a.Tag, a.Mark, a.Type)
		out.Add("Cache-Control", "public, max-age=1")
		out.Add("Vary", "Origin")
		p.responder.AllowOrigin(out, r.exchange.Request.Peek("Origin"))
		if out.Status == 200 {
			out.Write(a.Body)
		}
		return
	}
	out := r.localResponse(a.Status, a.Type)
	out.Add("Cache-Control", "private, no-store")
	if a.Location != "" {
		out.Add("Location", a.Location)
	}
	if a.Cookie != "" {
		out.Add("Set-Cookie", a.Cookie)
	}
	out.Write(a.Body)
}
