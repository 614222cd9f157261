// Package eventloop waits for what many sockets bring, in one place instead of one goroutine each.
//
// A Loop has one epoll, and one goroutine that leads: it takes what has come and serves it at once, one socket after the
// other, for as long as that needs no waiting. Who has to wait steps aside first: another goroutine leads from then on
// (the leader/followers pattern: D. C. Schmidt et al., Pattern-Oriented Software Architecture 2, 2000). So a request
// that is refused costs a read and a write, and wakes nobody; a socket at rest costs its descriptor.
//
// A Socket is a net.Conn. It rests, and then what comes is for the leader, or it belongs to one goroutine, which
// reads and writes it as any other connection until it lets it rest again. A guest is a connection of somebody else's, of which
// the loop only tells that something has come.
package eventloop

import "time"

// Serve takes a socket that rested and has something to be read, or its end. It owns the socket until it has it Rest,
// or closes it. It may wait only after StepAside.
type Serve func(*Socket)

// Lead has a goroutine call Turn.Lead. It does not wait for it.
type Lead func(Turn)

// Options of Open.
type Options struct {
	Loops  int // 0 = one for each processor
	Serve  Serve
	Expire Serve // takes a socket that has rested for as long as it may
	Lead   Lead  // nil = a new goroutine each time
}

// tick is how often it is looked whether a leader waits that has not stepped aside, and whether somebody has rested for too long.
const tick = 20 * time.Millisecond
