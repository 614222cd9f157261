package proxy

import (
	"bytes"
	"fmt"

	"sluice/internal/octets"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

const (
	roomPath   = "/.sluice/room/"
	roomTicket = "Sluice-Ticket" // where apps send a ticket
	roomPass   = "Sluice-Pass"   // likewise a pass; with an order it is not passed on
)

// boundRoom is a room, and how its routes find a user.
type boundRoom struct {
	Room
	path         string
	ticket, pass string         // its cookies
	user         param.Variable // of the first of its routes
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
			return route.Fault(rt.Name, "room",
				fmt.Errorf("there is no [[room]] %q", rt.Route.Room))
		}
		if p.waitingRooms[rt.Route.Room] == nil {
			ticket, pass := RoomCookies(rt.Route.Room)
			p.waitingRooms[rt.Route.Room] = &boundRoom{room, roomPath + rt.Route.Room, ticket, pass, rt.user}
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
			return route.Fault(rt.Name, "room", fmt.Errorf("is of a user: write user, and another gate than \"pass\""))
		}
		known := rt.proven()
		if err := known.KnownWithoutRoute("a ticket"); err != nil {
			return route.Fault(rt.Name, "room", err)
		}
		if other, has := users[rt.Route.Room]; has && other != rt.User {
			return route.Fault(rt.Name, "room",
				fmt.Errorf("user = %q, but another route of the room has %q; write the same", rt.User, other))
		}
		users[rt.Route.Room] = rt.User
	}
	return nil
}

// checkRoom rejects an order without a pass. A client that the room does not apply to needs none.
func (p *Proxy) checkRoom(r *Request) rejection {
	if r.route.room.Bypass().Holds(r.clientAddr(), &r.source) {
		return rejection{}
	}
	pass, fault := r.source.Header(roomPass)
	if fault.Reason == reject.Admitted && len(pass) == 0 {
		pass, fault = r.source.Cookie(r.route.room.pass)
	}
	if fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	reason, cause := r.route.room.Admits(p.sharedTime(r.now), r.buyer.sku, r.buyer.user, pass)
	if reason == reject.SoldOut {
		return p.checkSoldOutRoom(r)
	}
	return rejection{Reason: reason, Detail: reject.Detail{Cause: cause}}
}

// checkSoldOutRoom answers an order without a pass where the room is over, as if there was no room.
func (p *Proxy) checkSoldOutRoom(r *Request) rejection {
	if no := p.lookUpEarlierOrder(r); no.Reason != reject.Admitted {
		return no
	}
	return rejection{Reason: reject.Room} // units have come back
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
	head := r.head
	room, action := p.roomOf(head.Path)
	q := RoomQuestion{Action: action, Post: string(head.Method) == "POST", Time: p.sharedTime(r.now),
		Page: reject.PrefersPage(head.Peek("Accept")), Language: head.Peek("Accept-Language"), Secure: r.conn.Secure(),
		Prefer: head.Peek("Prefer"), Query: head.Query, Client: r.conn}
	r.notInLine = string(action) == "join"
	if q.Post && !r.sameOrigin() {
		return rejection{Reason: reject.Denied, Detail: reject.Detail{Cause: reject.CrossOrigin}}
	}
	if len(action) == 0 && q.Page && !q.Post { // the address to link to: programs read the room, people their place
		q.Action = []byte("me")
	}
	if len(q.Action) > 0 && !publicRoomAction(q.Action) {
		if no := p.askWho(r, room, &q); no.Reason != reject.Admitted {
			r.notInLine = r.notInLine || no.Reason == reject.Unidentified
			return no
		}
	}
	a := room.Answer(&q)
	if r.suspended = a.Suspended; a.Suspended {
		return rejection{}
	}
	if a.Rejection != reject.Admitted {
		return rejection{Reason: a.Rejection, Wait: a.Wait}
	}
	p.writeRoom(r, &a)
	return rejection{}
}

// sameOrigin reports whether the client itself asks, or a page of this host: another page could spend a visitor's
// place. Browsers say so in Sec-Fetch-Site over TLS, and in Origin with every POST.
func (r *Request) sameOrigin() bool {
	head := r.head
	if site := head.Peek("Sec-Fetch-Site"); len(site) > 0 {
		return string(site) == "same-origin" || string(site) == "none"
	}
	origin := head.Peek("Origin")
	_, host, _ := bytes.Cut(origin, []byte("://"))
	return len(origin) == 0 || bytes.EqualFold(host, head.Host)
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
	}{{&q.Signed, roomTicket, room.ticket}, {&q.Pass, roomPass, room.pass}} {
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
		out.Header.Add("Cache-Control", "public, max-age=1")
		out.Header.Add("Vary", "Accept, Origin")
		p.responder.AllowOrigin(r.conn.Prepared(), r.head.Peek("Origin"))
		if out.StatusCode() == 200 {
			out.AppendBody(a.Body)
		}
		return
	}
	out := r.localResponse(a.Status, a.Type)
	out.Header.Add("Cache-Control", "private, no-store")
	if a.Location != "" {
		out.Header.Add("Location", a.Location)
	}
	if a.Cookie != "" {
		out.Header.Add("Set-Cookie", a.Cookie)
	}
	out.AppendBody(a.Body)
}
