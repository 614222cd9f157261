package upstream

import (
	"io"
	"strconv"
	"time"
)

const (
	// A write that waits is interrupted so often, to see whether the upstream has responded already: one that rejects a
	// large body stops reading it.
	writeSlice = 50 * time.Millisecond

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
	if req.HTTP.IsBodyStream() {
		return e.sendStream(req)
	}
	if len(rest) == 0 {
		// One write, one deadline: a small request leaves as soon as it is in the socket's buffer, so that the
		// response's deadline may count from here.
		if err := c.setExchangeDeadline(e.start, min(e.response, e.total)); err != nil {
			return false, err
		}
		_, err := c.Write(c.out)
		return false, err
	}
	until := e.start.Add(e.total)
	if early, err = e.writePieces(c.out, until); early || err != nil {
		return early, err
	}
	if early, err = e.checkEarlyResponse(); early || err != nil {
		return early, err
	}
	if early, err = e.writePieces(rest, until); early || err != nil {
		return early, err
	}
	end := time.Now().Add(e.response)
	if until.Before(end) {
		end = until
	}
	return false, c.SetReadDeadline(end)
}

// sendStream sends a request whose body is a stream. Each write may take the whole timeout: how long an upload may take
// altogether is for the reader of the client's connection to say.
func (e *exchange) sendStream(req *Request) (early bool, err error) {
	length := req.streamLength()
	if early, err = e.writePieces(e.conn.out, time.Now().Add(e.total)); early || err != nil {
		return early, err
	}
	if early, err = e.copyBody(req.HTTP.BodyStream(), length); early || err != nil {
		return early, err
	}
	return false, e.conn.SetReadDeadline(time.Now().Add(e.response))
}

// writePieces writes p in pieces and looks for an early response between them.
func (e *exchange) writePieces(p []byte, until time.Time) (early bool, err error) {
	c := e.conn
	for len(p) > 0 {
		now := time.Now()
		end := until
		// crypto/tls gives up for good after one interrupted write: it gets the whole time at once.
		if !c.socket.tls && now.Add(writeSlice).Before(until) {
			end = now.Add(writeSlice)
		}
		if err := c.SetWriteDeadline(end); err != nil {
			return false, err
		}
		n, err := c.Write(p[:min(len(p), pieceSize)])
		p = p[n:]
		if err != nil && (!isTimeout(err) || end.Equal(until)) {
			return false, err
		}
		if len(p) > 0 { // after the last byte a response is no longer early
			if early, err := e.checkEarlyResponse(); early || err != nil {
				return early, err
			}
		}
	}
	return false, nil
}

// checkEarlyResponse reads a response that came before the request was whole. Interim ones are passed over. Under TLS
// nothing can be said without reading: what waits in the socket may be no response.
func (e *exchange) checkEarlyResponse() (early bool, err error) {
	for canProbe && !e.conn.socket.tls {
		if e.conn.in.buffered() == 0 && e.conn.socket.probe.silent() {
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
			if early, err := e.writePieces(part, time.Now().Add(e.total)); early || err != nil {
				return early, err
			}
		}
		if err == io.EOF && left < 0 {
			return e.writePieces([]byte("0\r\n\r\n"), time.Now().Add(e.total))
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
