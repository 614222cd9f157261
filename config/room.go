package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Room is a waiting room before routes.
type Room struct {
	Name string `toml:"name"` // unique: letters, digits and . _ -
	// name of a [[sale]], whose hours and stock the room follows; "" = none
	Sale  string        `toml:"sale"`
	Opens time.Duration `toml:"opens" range:"0s to 168h"` // so long before the start people are taken in
	Order string        `toml:"order" words:"fifo draw"`
	// the draw waits for public randomness
	Beacon bool `toml:"beacon"`
	// "KEY GENESIS PERIOD", see Chain; "" = drand's quicknet
	BeaconChain string `toml:"beacon_chain"`
	// CIDRs, and conditions on what is proven
	Bypass []string      `toml:"bypass"`
	Pass   time.Duration `toml:"pass" range:"10s to 24h"`
	// with the notice less than what room.MaxSteps keeps
	ClaimWithin time.Duration `toml:"claim_within" range:"5s to 55m"`
	Overshoot   float64       `toml:"overshoot" unit:"passes per unit" range:"1 to 10"`
	PerSecond   int           `toml:"per_second" unit:"people" range:"0 to 1000000"` // 0 = no bound
	PollCeiling time.Duration `toml:"poll_ceiling" range:"1s to 10m"`
	MaxParked   int           `toml:"max_parked" unit:"requests" range:"0 to 1000000"` // 0 = none
}

func (m *Room) preset() {
	*m = Room{Opens: 30 * time.Minute, Order: "fifo", Bypass: []string{}, Pass: 10 * time.Minute,
		ClaimWithin: 90 * time.Second,
		Overshoot:   1.3, PollCeiling: 20 * time.Second, MaxParked: 5_000}
}

var roomName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkRooms leaves what rooms, routes, keys and stock contradict each other in to the gateway that opens them.
func (c *Config) checkRooms(r *report) {
	names := make([]string, len(c.Rooms))
	for i := range c.Rooms {
		names[i] = strings.ToLower(c.Rooms[i].Name) // the names of their cookies would count as one
		c.Rooms[i].check(r, Element("room", i))
	}
	r.Unique(names, func(i int) string { return Element("room", i) + ".name" })
}

func (m *Room) check(r *report, at string) {
	if !roomName.MatchString(m.Name) {
		r.Fail(at+".name", "%q is not 1 to 64 letters, digits and . _ -; it is part of addresses and keys", m.Name)
	}
	m.checkBeacon(r, at)
}

// checkBeacon leaves it to the gateway whether the key is one.
func (m *Room) checkBeacon(r *report, at string) {
	if m.Beacon && m.Order != "draw" {
		r.Fail(at+".beacon", "only a draw has one; write order = \"draw\", or drop it")
	}
	if _, _, _, ok := m.Chain(); m.BeaconChain != "" && !ok {
		r.Fail(at+".beacon_chain", "%.80q is not the key of a beacon, the Unix seconds of its round 1, and 1s to 1h between "+
			"two rounds; write it like \"83cf… 1692803367 3s\"", m.BeaconChain)
	}
}

// Chain is BeaconChain: the public key of a beacon in hexadecimal digits, when its round 1 was published, and the time
// from one round to the next.
func (m *Room) Chain() (key string, genesis time.Time, period time.Duration, ok bool) {
	parts := strings.Fields(m.BeaconChain)
	if len(parts) != 3 {
		return "", genesis, 0, false
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 34)
	period, fault := time.ParseDuration(parts[2])
	ok = err == nil && fault == nil && seconds > 0 && period >= time.Second && period <= time.Hour
	return parts[0], time.Unix(seconds, 0), period, ok
}

// maxRoomKeys is how many keys tickets are checked with, at most: the first one signs.
const maxRoomKeys = 4

// RoomKeyList are the keys of tickets and passes, a line each: the one that signs first.
func (p *Auth) RoomKeyList() (keys [][]byte) {
	for _, line := range bytes.Split([]byte(p.RoomKeys), []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			keys = append(keys, line)
		}
	}
	return keys
}

func (p *Auth) checkRoomKeys(r *report, folder string) {
	keys := p.RoomKeyList()
	if len(keys) > maxRoomKeys {
		r.Fail("auth.room_key_file", "%s holds %d keys; keep the one that signs first, and at most %d older ones",
			resolvePath(folder, p.RoomKeyFile), len(keys), maxRoomKeys-1)
	}
	for i, key := range keys {
		if len(key) < 16 {
			r.Fail("auth.room_key_file", "%s: key %d has fewer than 16 bytes; write a longer one, such as that of: openssl "+
				"rand -hex 32",
				resolvePath(folder, p.RoomKeyFile), i+1)
		}
	}
}
