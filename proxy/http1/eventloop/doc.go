// Package eventloop serves many TCP connections on Linux with few goroutines. It is an optional optimisation of
// the HTTP server: with the build tag noeventloop, and on other systems, the package is empty and every
// connection has a goroutine of its own.
//
// The package promises:
//   - A connection that waits for its next request costs a descriptor and a Conn, but no goroutine.
//   - A request that is answered without blocking costs one read and one write, and wakes no goroutine.
//   - A blocking Read parks its goroutine on the event loop. The leader of the loop wakes it on the same processor, without
//     the network poller of Go.
//
// A Group has one loop for each processor. A loop has one epoll instance and one goroutine that leads it: the
// leader collects events and calls Serve for each connection that became readable, one after the other. A
// callee that is about to block calls StepAside first; another worker then leads the loop. This is the
// leader/followers pattern (D. C. Schmidt et al., Pattern-Oriented Software Architecture 2, 2000). A leader
// that blocks without StepAside is replaced after 20 to 40 ms. A leader that stays busy yields its processor at
// regular intervals.
//
// The package does not parse anything, does not limit the number of connections, and does not close connections
// that wait when the Group closes. It does not support TLS listeners and unix sockets.
package eventloop
