// Package eventloop serves many TCP connections on Linux with few goroutines. It is an optional optimisation of a
// server: with the build tag noeventloop, and on other systems, the package is empty and every connection has a
// goroutine of its own.
//
// The package promises:
//   - A connection that waits for its next request costs a descriptor and a Conn, but no goroutine.
//   - A request that is answered without blocking costs one read and one write, and wakes no thread.
//   - A Read that blocks, of the connection or of one that is bound to it, parks the goroutine on the loop. It goes on
//     without Go's scheduler, network poller or timers.
//
// A Group has one loop for each processor. A loop has one epoll instance and one goroutine that leads it. The leader
// collects events and switches to a coroutine (package iter) for each connection that became readable; the coroutine
// calls Serve. When it parks, it switches back to the leader, which resumes it after the event. A callee that is about
// to block outside of this package calls StepAside first: another goroutine then leads the loop (leader/followers:
// D. C. Schmidt et al., Pattern-Oriented Software Architecture 2, 2000). A leader that blocks without StepAside is
// replaced after 20 to 40 ms. A leader that stays busy yields its processor at regular intervals.
//
// Why coroutines: to ready a goroutine for a request wakes a second thread each time when a processor is idle. That
// doubled the CPU of a forwarded request.
//
// The package does not parse anything, does not limit the number of connections, and does not close connections that
// wait when the Group closes. It does not support TLS listeners and unix sockets.
package eventloop
