package upstream

import (
	"io"
	"strconv"
	"time"
)

const (
	// A write that waits so long is interrupted once, to see whether the upstream has responded already: one that
	// rejects a large body stops reading it.
	lookAfter = 50 * time.Millisecond

	// When a request could not be written to its end, a response that says why is waited for so long, even beyond the
	// exchange's timeout.
	earlyGrace = 200 * time.Millisecond
)

// send writes the whole request. It returns early = true when the final response came first and its head is in e.head;
// the request is then not whole, and the connection is not used again.
func (e *exchange) send(req *Request, authority []byte) (early bool, err error) {
	c := e.conn
	if c.reused && !c.fresh() {
		return false, errStale
	}
	rest := c.assemble(req, authority)
	if len(rest) == 0 && !req.HTTP.IsBodyStream() {
		// One write, one deadline: a small request leaves as soon as it is in the socket's buffer, so that the
		// response's deadline may count from here.
		if err := c.SetDeadline(e.start.Add(min(e.response, e.total))); err != nil {
			return false, err
		}
		_, err := c.Write(c.out)
		return false, err
	}
	end := time.Time{} // of the exchange: how long a stream may take is for the reader of the client's connection to say
	if req.HTTP.IsBodyStream() {
		early, err = e.sendStream(req)
	} else {
		end = e.start.Add(e.total)
		if early, err = e.write(c.out, end); !early && err == nil {
			early, err = e.write(rest, end)
		}
	}
	if early || err != nil {
		return early, err
	}
	if last := time.Now().Add(e.response); end.IsZero() || last.Before(end) {
		end = last
	}
	return false, c.SetReadDeadline(end)
}

// sendStream sends a request whose body is a stream. Each write may take the whole timeout.
func (e *exchange) sendStream(req *Request) (early bool, err error) {
	length := req.streamLength()
	if early, err = e.write(e.conn.out, time.Now().Add(e.total)); early || err != nil {
		return early, err
	}
	return e.copyBody(req.HTTP.BodyStream(), length)
}

// write writes p, and looks for an early response once, when that takes long.
func (e *exchange) write(p []byte, until time.Time) (early bool, err error) {
	c, end := e.conn, until
	// crypto/tls gives up for good after one interrupted write: it gets the whole time at once.
	if look := time.Now().Add(lookAfter); !c.socket.tls && look.Before(until) {
		end = look
	}
	if err := c.SetWriteDeadline(end); err != nil {
		return false, err
	}
	n, err := c.Write(p)
	if err == nil || !isTimeout(err) || end.Equal(until) {
		return false, err
	}
	if early, err = e.checkEarlyResponse(); early || err != nil {
		return early, err
	}
	if err := c.SetWriteDeadline(until); err != nil {
		return false, err
	}
	_, err = c.Write(p[n:])
	return false, err
}

// checkEarlyResponse reads a response that came before the request was whole. Interim ones are passed over. Under TLS
// nothing can be said without reading: what waits in the socket may be no response.
func (e *exchange) checkEarlyResponse() (early bool, err error) {
	for canProbe && !e.conn.socket.tls {
		if e.conn.in.buffered() == 0 && e.conn.socket.silent() {
			return false, nil
		}
		if err := e.conn.SetReadDeadline(time.Now().Add(e.response)); err != nil {
			return false, err
		}
		if final, err := e.readHead(); final || err != nil {
			return final, err
		}
	}
	return false, nil
}

// chunkOverhead is the room for a chunk's size line, and for the CRLF behind the chunk.
const chunkOverhead = 20

// copyBody writes a body of left bytes that comes from a stream, or of chunks where left is -1.
func (e *exchange) copyBody(stream io.Reader, left int64) (early bool, err error) {
	buf := make([]byte, smallRequest+2*chunkOverhead)
	for left != 0 {
		if early, err := e.checkEarlyResponse(); early || err != nil {
			return early, err
		}
		data := buf[chunkOverhead : chunkOverhead+smallRequest]
		if left > 0 {
			data = data[:min(int64(len(data)), left)]
		}
		n, err := stream.Read(data)
		if n > 0 {
			part := data[:n]
			if left > 0 {
				left -= int64(n)
			} else {
				part = frameChunk(buf, n)
			}
			if early, err := e.write(part, time.Now().Add(e.total)); early || err != nil {
				return early, err
			}
		}
		if err == io.EOF && left < 0 {
			return e.write([]byte("0\r\n\r\n"), time.Now().Add(e.total))
		}
		if err != nil && left != 0 {
			e.uploadCut = true
			return false, unexpectedEOF(err)
		}
	}
	return false, nil
}

// frameChunk puts a chunk's size line before the n bytes at buf[chunkOverhead:], and a CRLF behind them.
func frameChunk(buf []byte, n int) []byte {
	var size [18]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), crlf...)
	from := chunkOverhead - len(line)
	copy(buf[from:], line)
	copy(buf[chunkOverhead+n:], crlf)
	return buf[from : chunkOverhead+n+len(crlf)]
}
