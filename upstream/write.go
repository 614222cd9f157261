package upstream

import (
	"io"
	"strconv"
	"time"

	"sluice/proxy"
)

const (
	// A write that waits is interrupted so often, to hear whether the shop has answered already: a shop
	// that refuses a large body stops reading it and would otherwise be waited for in vain.
	slice = 50 * time.Millisecond

	// When a request could not be written to its end, an answer that says why is waited for so long, even
	// beyond the exchange's time-out.
	grace = 200 * time.Millisecond
)

// write sends the whole request. It returns early = true when the shop's final answer came first and
// is in e.head; the request is then not whole, and the connection has no future.
func (e *exchange) write(out *proxy.Outgoing, authority []byte) (early bool, err error) {
	c := e.conn
	rest := c.assemble(out, authority)
	small := len(rest) == 0 && out.BodyStream == nil
	if short := small && c.trip.able(); c.reused && !short && !c.fresh() {
		return false, errStale
	}
	if small {
		// One write, one deadline: a small request leaves as soon as it is in the socket's buffer, so
		// that the answer's deadline may count from here.
		if err := c.answerWithin(e.start, min(e.answer, e.whole)); err != nil {
			return false, err
		}
		if c.trip.able() {
			return false, c.trip.run()
		}
		_, err := c.Write(c.out)
		return false, err
	}
	if out.BodyStream != nil {
		return e.writeStream(out)
	}
	until := e.start.Add(e.whole)
	if early, err = e.push(c.out, until); early || err != nil {
		return early, err
	}
	if early, err = e.listen(); early || err != nil {
		return early, err
	}
	if early, err = e.push(rest, until); early || err != nil {
		return early, err
	}
	end := time.Now().Add(e.answer)
	if until.Before(end) {
		end = until
	}
	return false, c.SetReadDeadline(end)
}

// writeStream sends a request whose body is a stream. Each write may take the whole time-out: how long
// an upload may take altogether is for the reader of the client's connection to say.
func (e *exchange) writeStream(out *proxy.Outgoing) (early bool, err error) {
	if early, err = e.push(e.conn.out, time.Now().Add(e.whole)); early || err != nil {
		return early, err
	}
	if early, err = e.pour(out); early || err != nil {
		return early, err
	}
	return false, e.conn.SetReadDeadline(time.Now().Add(e.answer))
}

// push writes p in pieces and listens between them.
func (e *exchange) push(p []byte, until time.Time) (early bool, err error) {
	c := e.conn
	for len(p) > 0 {
		now := time.Now()
		end := until
		// crypto/tls gives up for good after one interrupted write: it gets the whole time at once.
		if !c.socket.tls && now.Add(slice).Before(until) {
			end = now.Add(slice)
		}
		if err := c.SetWriteDeadline(end); err != nil {
			return false, err
		}
		n, err := c.Write(p[:min(len(p), piece)])
		p = p[n:]
		if err != nil && (!timedOut(err) || end.Equal(until)) {
			return false, err
		}
		if len(p) > 0 { // after the last byte an answer is no longer early
			if early, err := e.listen(); early || err != nil {
				return early, err
			}
		}
	}
	return false, nil
}

// listen reads an answer that came before the request was whole. Interim ones are passed over. Under
// TLS nothing can be said without reading: what waits in the socket may be no answer.
func (e *exchange) listen() (early bool, err error) {
	for canProbe && !e.conn.socket.tls {
		if e.conn.in.buffered() == 0 && e.conn.socket.probe.silent() {
			return false, nil
		}
		if err := e.conn.SetReadDeadline(time.Now().Add(e.answer)); err != nil {
			return false, err
		}
		if final, err := e.readHead(); final || err != nil {
			return final, err
		}
	}
	return false, nil
}

// pour writes a body that comes from a stream, in chunks if its length is not known.
func (e *exchange) pour(out *proxy.Outgoing) (early bool, err error) {
	c := e.conn
	left := out.BodyLength
	const room = 20 // for a chunk's size line and the end of the chunk before
	if cap(c.out) < smallRequest+2*room {
		c.out = make([]byte, 0, smallRequest+2*room)
	}
	buf := c.out[:cap(c.out)]
	for left != 0 {
		if early, err := e.listen(); early || err != nil {
			return early, err
		}
		data := buf[room : room+smallRequest]
		if left > 0 && left < int64(len(data)) {
			data = data[:left]
		}
		n, err := out.BodyStream.Read(data)
		if n > 0 {
			part := data[:n]
			if left > 0 {
				left -= int64(n)
			} else {
				part = frame(buf, room, n)
			}
			if early, err := e.push(part, time.Now().Add(e.whole)); early || err != nil {
				return early, err
			}
		}
		if err == io.EOF && left < 0 {
			return e.push([]byte("0\r\n\r\n"), time.Now().Add(e.whole))
		}
		if err != nil && left != 0 {
			e.cut = true
			return false, unexpected(err)
		}
	}
	return false, nil
}

// frame puts a chunk's size line before the n bytes at buf[at:], and a CRLF behind them.
func frame(buf []byte, at, n int) []byte {
	var size [18]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), crlf...)
	from := at - len(line)
	copy(buf[from:at], line)
	copy(buf[at+n:], crlf)
	return buf[from : at+n+len(crlf)]
}
