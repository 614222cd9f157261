package config

import (
	"bytes"
	"regexp"
	"sluice/config/position"
	"sluice/config/report"
	"sluice/config/source"
	"time"
)

// Room is a waiting room before routes.
type Room struct {
	Name string `toml:"name"` // unique: letters, digits and . _ -
	// name of a [[sale]], whose hours and stock the room follows; "" = none
	Sale          string        `toml:"sale"`
	Opens         time.Duration `toml:"opens"`                              // so long before the start people are taken in
	Order         string        `toml:"order"`                              // "fifo" or "draw"
	Beacon        bool          `toml:"beacon"`                             // the draw waits for public randomness
	BeaconKey     string        `toml:"beacon_key"`                         // in hexadecimal digits; "" = drand's quicknet
	BeaconGenesis int           `toml:"beacon_genesis" unit:"Unix seconds"` // of its round 1; 0 = that of quicknet
	BeaconPeriod  time.Duration `toml:"beacon_period"`                      // between its rounds; 0 = that of quicknet
	Bypass        []string      `toml:"bypass"`                             // CIDRs, and conditions on what is proven
	Pass          time.Duration `toml:"pass"`                               // 10 s to 24 h
	ClaimWithin   time.Duration `toml:"claim_within"`                       // 5 s to 1 h
	Overshoot     float64       `toml:"overshoot" unit:"passes per unit"`   // 1 to 10
	PerSecond     int           `toml:"per_second" unit:"people"`           // 0 = no bound
	PollFloor     time.Duration `toml:"poll_floor"`                         // 1 s to 1 min
	PollCeiling   time.Duration `toml:"poll_ceiling"`                       // 1 s to 10 min
	MaxParked     int           `toml:"max_parked" unit:"requests"`         // 0 = none
}

func (m *Room) preset() {
	*m = Room{Opens: 30 * time.Minute, Order: "fifo", Bypass: []string{}, Pass: 10 * time.Minute,
		ClaimWithin: 90 * time.Second,
		Overshoot:   1.3, PollFloor: time.Second, PollCeiling: 20 * time.Second, MaxParked: 5_000}
}

var roomName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkRooms leaves what rooms, routes, keys and stock contradict each other in to the gateway that opens them.
func (c *Config) checkRooms(r *report.Report) {
	names := make([]string, len(c.Rooms))
	for i := range c.Rooms {
		names[i] = c.Rooms[i].Name
		c.Rooms[i].check(r, position.Element("room", i))
	}
	r.Unique(names, func(i int) string { return position.Element("room", i) + ".name" })
}

func (m *Room) check(r *report.Report, at string) {
	if !roomName.MatchString(m.Name) {
		r.Fail(at+".name", "%q is not 1 to 64 letters, digits and . _ -; it is part of addresses and keys", m.Name)
	}
	report.Between(r, at+".opens", m.Opens, 0, 7*24*time.Hour)
	r.OneOf(at+".order", m.Order, "fifo", "draw")
	m.checkBeacon(r, at)
	report.Between(r, at+".pass", m.Pass, 10*time.Second, 24*time.Hour)
	report.Between(r, at+".claim_within", m.ClaimWithin, 5*time.Second, time.Hour)
	report.Between(r, at+".overshoot", m.Overshoot, 1, 10)
	report.Between(r, at+".per_second", m.PerSecond, 0, 1_000_000)
	report.Between(r, at+".poll_floor", m.PollFloor, time.Second, time.Minute)
	report.Between(r, at+".poll_ceiling", m.PollCeiling, time.Second, 10*time.Minute)
	if m.PollFloor > m.PollCeiling {
		r.Fail(at+".poll_floor", "%v exceeds poll_ceiling (%v); lower it, or raise the other", m.PollFloor, m.PollCeiling)
	}
	report.Between(r, at+".max_parked", m.MaxParked, 0, 1_000_000)
}

// checkBeacon leaves it to the gateway whether the key is one.
func (m *Room) checkBeacon(r *report.Report, at string) {
	report.Between(r, at+".beacon_genesis", m.BeaconGenesis, 0, 1<<33)
	report.Between(r, at+".beacon_period", m.BeaconPeriod, 0, time.Hour)
	switch own := m.BeaconKey != ""; {
	case m.Beacon && m.Order != "draw":
		r.Fail(at+".beacon", "only a draw has one; write order = \"draw\", or drop it")
	case !own && (m.BeaconGenesis > 0 || m.BeaconPeriod > 0):
		r.Fail(at+".beacon_key", "is missing: genesis and period are those of the beacon of this key; write it, or drop both")
	case own && (m.BeaconGenesis == 0 || m.BeaconPeriod < time.Second):
		r.Fail(at+".beacon_key", "of another beacon than quicknet the gate must know when its rounds are published; write "+
			"beacon_genesis and beacon_period, of 1s or more")
	}
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

func (p *Auth) checkRoomKeys(r *report.Report, folder string) {
	keys := p.RoomKeyList()
	if len(keys) > maxRoomKeys {
		r.Fail("auth.room_key_file", "%s holds %d keys; keep the one that signs first, and at most %d older ones",
			source.From(folder, p.RoomKeyFile), len(keys), maxRoomKeys-1)
	}
	for i, key := range keys {
		if len(key) < 16 {
			r.Fail("auth.room_key_file", "%s: key %d has fewer than 16 bytes; write a longer one, such as that of: openssl "+
				"rand -hex 32",
				source.From(folder, p.RoomKeyFile), i+1)
		}
	}
}
