// Package server is a strict HTTP/1.1 server for fasthttp's types. It accepts legal requests as they were received, and
// rejects each request that two parsers could read differently. It promises:
//
//   - A handler sees one valid head at a time: one request line, at most one Host, one framing (RFC 9112, section 6).
//     The strict look checks the raw head whole. What another parser could read differently is rejected before it
//     reads. fasthttp's parser reads a head when the handler asks, by Parse.
//   - ReadBody returns content without framing, not a byte more or less than the framing says. A body that is cut short
//     is never taken for a whole one. A body is read only when the handler asks, and 100 Continue is sent only then
//     (RFC 9110, section 10.1.1).
//   - A response is framed by this package alone: by Content-Length, in chunks, or until the connection closes for
//     clients of HTTP/1.0 (RFC 9112, section 6.3). Server and Content-Type are never invented. A response without Date
//     gets one (RFC 9110, section 6.6.1), and a Date that is there stays.
//   - A connection that ends is closed so that the client can read the whole answer (RFC 9112, section 9.6).
//   - After a protocol error nothing more is read from the connection.
//
// It is no fasthttp.Server, for seven reasons:
//
//   - A connection that waits holds no buffer and no context: it costs below 2 KiB, and 16 KiB there.
//   - A request is rejected before its body is read, and before 100 Continue.
//   - Head and body have a time each.
//   - Heads may be as large as Limits.Header without a buffer of that size for each connection.
//   - The strict look needs the raw head.
//   - A connection lingers when it ends, so that no answer is lost to a reset.
//   - A panic costs one request, and a request can wait without a goroutine (Suspend).
//
// A handler also serves under a fasthttp.Server, without these: see Foreign.
//
// Accepted: any token as method (RFC 9110, section 9.1); targets in origin form, "OPTIONS *", and the absolute form
// whose authority equals Host (RFC 9112, section 3.2); any visible ASCII in a target but "#"; one empty line before a
// request (RFC 9112, section 2.2); HTTP/1.0, with or without Host; pipelined requests.
//
// Rejected, each by one Rule: bare LF and CR, NUL and control bytes (RFC 9112, section 2.2); obs-fold and space
// before the colon (sections 5.1 and 5.2); Content-Length with Transfer-Encoding, either of them twice, other codings
// than chunked, and chunk extensions (sections 6 and 7.1); trailers; a missing, repeated or malformed Host (RFC 9112,
// section 3.2, and RFC 9110, section 7.2); "%00", "%0d" and "%0a" in a target; fields such as "content_length", which
// CGI folds into a framing field; a Connection field that names an end-to-end field (RFC 9110, section 7.6.1); TRACE
// and CONNECT; heads over the Limits.
//
// The reference engine runs one goroutine per connection on any net.Listener. On Linux, plain TCP connections wait in
// the event loops of package eventloop instead; with the build tag noeventloop they do not.
//
// The package does not know routes, limits or the upstream, does not decode paths, and does not bound bodies.
package server
