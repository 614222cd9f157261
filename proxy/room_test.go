package proxy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// atRoom is a proxy before one route with a room.
func atRoom(t *testing.T, change func(*Options)) (*Proxy, *closedRoom) {
	t.Helper()
	o, room := checkedOptions(), &closedRoom{}
	o.Routes[0].Room, o.Rooms = "rush", map[string]Room{"rush": room}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, room
}

func TestRoom_AddressesAreAnsweredWithWhoAsks(t *testing.T) {
	p, _ := atRoom(t, nil)
	for _, c := range []struct{ request, header, want string }{
		{"GET /.sluice/room/rush", "", "200  post=false user= ticket= pass= page=false"},
		{"GET /.sluice/room/rush?back=/p", "Cookie: uid=7\r\nAccept: text/html\r\n",
			"200 me post=false user=7 ticket= pass= page=true"},
		{"GET /.sluice/room/rush", "If-None-Match: W/\"1\"\r\n", "304 "},
		{"POST /.sluice/room/rush/join", "Cookie: uid=7\r\n", "200 join post=true user=7 ticket= pass= page=false"},
		{"GET /.sluice/room/rush/me", "Cookie: uid=7; sluice_room=abc; sluice_pass_rush=x\r\n",
			"200 me post=false user=7 ticket=abc pass=x page=false"},
		{"GET /.sluice/room/rush/me", "Cookie: uid=7; sluice_room=abc\r\nSluice-Ticket: def\r\nAccept: text/html\r\n",
			"200 me post=false user=7 ticket=def pass= page=true"},
		{"GET /.sluice/room/rush/me", "", "401 "},
		{"GET /.sluice/room/rush/gone", "Cookie: uid=7\r\n", "404 "},
	} {
		resp, text := handleOneWith(t, p, c.request+" HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n"+c.header+"\r\n")
		if got := resp.Status[:3] + " " + text; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %q: %s, want %s", c.request, c.header, got, c.want)
		}
	}
}

func TestRoom_WhatIsOfOneClientIsNotShared(t *testing.T) {
	p, _ := atRoom(t, nil)
	resp, _ := handleOneWith(t, p, "GET /.sluice/room/rush/me HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n\r\n")
	if got := resp.Header.Get("Cache-Control"); got != "private, no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	resp, _ = handleOneWith(t, p, "GET /.sluice/room/rush HTTP/1.1\r\nHost: shop\r\n\r\n")
	if got := resp.Header.Get("Cache-Control"); got != "public, max-age=1" {
		t.Errorf("Cache-Control %q", got)
	}
}

func TestRoom_OrderNeedsAPassUnlessTheClientBypassesLimits(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		change func(*Options)
		want   string
	}{
		"none":           {order, nil, "room"},
		"wrong":          {orderWith("Cookie", "Sluice-Pass: bad\r\nCookie"), nil, "room"},
		"in a header":    {orderWith("Cookie", "Sluice-Pass: good\r\nCookie"), nil, ""},
		"in a cookie":    {orderWith("uid=", "sluice_pass_rush=good; uid="), nil, ""},
		"another room's": {orderWith("uid=", "sluice_pass_other=good; uid="), nil, "room"},
		"bypass": {order, func(o *Options) {
			o.Bypass = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		}, ""},
	} {
		p, _ := atRoom(t, c.change)
		resp, _ := handleOneWith(t, p, c.raw)
		if got := resp.Header.Get("X-Sluice-Reason"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRoom_RejectionSaysWhereTheRoomIs(t *testing.T) {
	p, _ := atRoom(t, func(o *Options) {
		o.Responses.Answers = map[reject.Class]reject.Answer{reject.RoomClass: {Status: 403}}
	})
	resp, text := handleOneWith(t, p, order)
	if resp.StatusCode != 403 || !strings.Contains(text, `"room":"/.sluice/room/rush"`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	_, text = handleOneWith(t, p, orderWith("Cookie",
		"Accept: text/html\r\nAccept-Language: en\r\nReferer: http://shop/item?id=1\r\nCookie"))
	want := `<form method="post" action="/.sluice/room/rush/join?back=/item?id=1"><button>Join the waiting room</button>`
	if !strings.Contains(text, want) {
		t.Errorf("the page lacks %s:\n%s", want, text)
	}
}

// The pass of a buyer whose answer was lost may have ended since: the page must not say that nothing was ordered.
func TestRoom_RejectionDeniesNoOrderThatMayHaveBeenPlaced(t *testing.T) {
	for gate, want := range map[route.Gate]string{route.Reserve: "This request has placed no new order.",
		route.Limit: "This request placed no order"} {
		p, _ := atRoom(t, func(o *Options) { o.Routes[0].Gate, o.Orders = gate, fixedOrders{} })
		if _, text := handleOneWith(t, p, order); !strings.Contains(text, want) {
			t.Errorf("gate %v: %s, want %s", gate, text, want)
		}
	}
}

// Where a room is over an order hears what it would hear without the room, and a buyer of the own order.
func TestRoom_OrderAtARoomThatIsOverIsLookedUp(t *testing.T) {
	for answer, want := range map[reject.Reason]string{reject.SoldOut: "sold_out", reject.Confirmed: "confirmed"} {
		o, ledger := reserving(&recorder{})
		ledger.answer.Reason, ledger.lookUp = answer, true
		o.Routes[0].Room, o.Rooms = "rush", map[string]Room{"rush": &closedRoom{over: true}}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if resp, _ := handleOneWith(t, p, buying); resp.Header.Get("X-Sluice-Reason") != want {
			t.Errorf("%v, want %s", resp.Header, want)
		}
		ledger.lookUp = false // units have come back: no order without a pass takes one
		if resp, _ := handleOneWith(t, p, buying); resp.Header.Get("X-Sluice-Reason") != "room" || len(ledger.asked()) > 0 {
			t.Errorf("%v, reserved %v", resp.Header, ledger.asked())
		}
	}
}

// A client that orders before the start can line up as soon as the room takes people in.
func TestRoom_EarlyOrderIsLedToTheRoom(t *testing.T) {
	p, room := atRoom(t, func(o *Options) { o.Schedule = &closing{new([]string), 0, reject.NotStarted} })
	for _, room.joinable = range []bool{false, true} {
		_, text := handleOneWith(t, p, order)
		if strings.Contains(text, `"room":"/.sluice/room/rush"`) != room.joinable {
			t.Errorf("joinable %v: %s", room.joinable, text)
		}
		_, text = handleOneWith(t, p, orderWith("Cookie", "Accept: text/html\r\nAccept-Language: en\r\nCookie"))
		if strings.Contains(text, "<button>Line up now</button>") != room.joinable {
			t.Errorf("joinable %v: %s", room.joinable, text)
		}
	}
}

// A room that cannot reach Redis has used up nothing of the memory for bodies, which rejects with the same reason.
func TestRoom_RejectionWithoutRedisNamesNoLimit(t *testing.T) {
	k := &recordKeeper{samples: true}
	p, _ := atRoom(t, func(o *Options) {
		o.AccessLog, o.Bounds = k, map[reject.Reason]string{reject.Overloaded: "server.body_memory: 64MiB"}
	})
	_, text := handleOneWith(t, p, "GET /.sluice/room/rush/away HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n\r\n")
	if e := k.only(t); e.Reason != reject.Overloaded || e.Limit != "" || strings.Contains(text, "body_memory") {
		t.Errorf("recorded %v by %q: %s", e.Reason, e.Limit, text)
	}
}

// People who ask a room read of their place there, and not of an order.
func TestRoom_RejectedPeopleAreToldThatTheyAreNotInLine(t *testing.T) {
	p, _ := atRoom(t, nil)
	for request, want := range map[string]string{
		"GET /.sluice/room/rush/me": "Please sign in first</h1>\n<p class=\"lead\">You are not in line.",
		"POST /.sluice/room/rush/join HTTP/1.1\r\nOrigin: http://evil\r\nCookie: uid=7": "You are not in line.",
	} {
		if !strings.Contains(request, "HTTP/1.1") {
			request += " HTTP/1.1"
		}
		_, text := handleOneWith(t, p, request+"\r\nHost: shop\r\nContent-Length: 0\r\nAccept: text/html\r\n"+
			"Accept-Language: en\r\n\r\n")
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", request, text)
		}
	}
}

func TestFaults_UserOfARoomMustBeKnownWithoutARoute(t *testing.T) {
	of := func(user string, gate route.Gate) Route {
		return Route{Name: "a", Match: "/a/{uid}", Gate: gate, User: user, Room: "rush"}
	}
	other := of("$http_user", route.Limit)
	other.Name, other.Match = "b", "/b"
	for name, c := range map[string]struct {
		routes []Route
		want   string
	}{
		"good":        {[]Route{of("$cookie_uid", route.Limit)}, ""},
		"in the path": {[]Route{of("$path_uid", route.Limit)}, "is not known where a ticket is given out"},
		"none":        {[]Route{of("", route.Limit)}, "is of a user"},
		"pass":        {[]Route{of("$cookie_uid", route.Pass)}, "is of a user"},
		"two of them": {[]Route{of("$cookie_uid", route.Limit), other}, "write the same"},
	} {
		err := errors.Join(Faults(Options{Routes: c.routes})...)
		var at *route.Error
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &at) || at.Key != "room" ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
