package doctor

import (
	"fmt"
	"math/bits"

	"sluice/config"
	"sluice/upstream"
)

// What is not a key, in bytes. docs/limits.md has the formula.
const (
	programMemory  = 48 << 20 // the program itself, and what it keeps for metrics, access log and dashboard
	requestMemory  = 12 << 10 // a connection with a request under way: its stack, buffers and records, but for its head
	exchangeMemory = 96 << 10 // a connection to the shop: its buffers, a piece of an upload, an answer of up to 64 KiB
	windowMemory   = 64       // one SKU in the windows
	windowSKUs     = 100_000
	claimMemory    = 512      // one verified token
	inFlightMemory = 40       // a key with a request in flight: at most one for each connection
	roomMemory     = 18 << 20 // a waiting room: 2^20 users that join, its steps and its record
	parkedMemory   = 5 << 10  // a request that waits for news of a room, beside its connection
	joinMemory     = 256      // a request that waits for a number or a pass, likewise
)

// memoryPart is a part of the memory that the configuration allows, in bytes.
type memoryPart struct {
	name  string
	bytes int64
}

// memoryParts are what clients and the shop can make Sluice keep at one time, at most.
func memoryParts(c *config.Config) []memoryPart {
	tables := int64(windowMemory) << bits.Len(windowSKUs-1)
	for i := range c.Limits.Rates {
		tables += rateBytes(&c.Limits.Rates[i])
	}
	tables += inFlightMemory * int64(c.Limits.Connection.MaxConnections*len(c.Limits.InFlight))
	if c.Auth.JWTAlgorithm != "" {
		tables += claimMemory * config.JWTCacheSize
	}
	tables += int64(c.AccessLog.BufferSize)
	parts := []memoryPart{
		{"connections", int64(c.Limits.Connection.MaxConnections) * (requestMemory + int64(c.Server.MaxHeaderSize))},
		{"bodies", int64(c.Server.BodyMemory)},
		{"answers", int64(c.Server.ResponseMemory()) + exchangeMemory*int64(c.Upstream.MaxConns*len(c.Upstream.Targets))},
		{"tables", tables},
	}
	if c.HasGate("reserve") {
		most := min(c.Limits.Concurrency.MaxInFlight, c.Upstream.MaxConns*len(c.Upstream.Targets))
		parts = append(parts, memoryPart{"orders", upstream.MaxWhole * int64(most)})
	}
	if len(c.Rooms) > 0 {
		parts = append(parts, memoryPart{"rooms", roomBytes(c)})
	}
	if c.KeepsPages() {
		parts = append(parts, memoryPart{"pages", int64(c.Cache.Size)})
	}
	return parts
}

// roomBytes are those of all waiting rooms. A connection has one request that waits.
func roomBytes(c *config.Config) int64 {
	parked, connections := 0, int64(c.Limits.Connection.MaxConnections)
	for i := range c.Rooms {
		parked += c.Rooms[i].MaxParked
	}
	return roomMemory*int64(len(c.Rooms)) + parkedMemory*min(int64(parked), connections) + joinMemory*connections
}

// rateBytes are the tables of a keyed rate: its own, and one for each override that counts.
func rateBytes(r *config.Rate) int64 {
	tables := 1
	for _, o := range r.RateOverrides() {
		if o.Rate > 0 {
			tables++
		}
	}
	return 16 * int64(r.MaxKeys) * int64(tables)
}

// sizeMemory says how much memory the configuration allows at the worst. Go collects garbage when as much was
// allocated as is in use: so twice the parts.
func (o *Report) sizeMemory(c *config.Config) {
	sum, text := int64(0), ""
	for i, part := range memoryParts(c) {
		if sum += part.bytes; i > 0 {
			text += " + "
		}
		text += fmt.Sprintf("%s %d", part.name, mebibytes(part.bytes))
	}
	o.Info("memory", "at most %d MiB = 2 x (%s) + %d; connections are limits.connection.max_connections, each with a "+
		"head of "+
		"server.max_header_size", mebibytes(2*sum+programMemory), text, programMemory>>20)
}

// mebibytes rounds up.
func mebibytes(n int64) int64 { return (n + 1<<20 - 1) >> 20 }
