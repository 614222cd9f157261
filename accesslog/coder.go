package accesslog

import (
	"encoding/binary"
	"unsafe"

	"sluice/proxy/metrics"
)

const (
	maxCoded = 2 << 10 // bytes that a usual record has at most

	maxPath   = 640 // bytes; a longer one is cut
	maxUser   = 256 // a longer user or SKU is left out: it is why the request was rejected
	maxText   = 128 // of a request ID and of a SKU
	maxMethod = 16
)

// coder writes records as bytes, or reads them again: numbers as varints, texts behind their lengths.
type coder struct {
	bytes []byte // what was written, or what is left to read; what is read are parts of it
	reads bool
}

// record writes e, or fills it.
func (c *coder) record(e *metrics.AccessRecord) {
	number(c, &e.Arrived, 0)
	number(c, &e.Decided, e.Arrived)
	number(c, &e.Answered, e.Arrived)
	number(c, &e.Done, e.Arrived)
	c.address(e)
	e.Path = e.Path[:min(len(e.Path), maxPath)]
	c.text(&e.ID, maxText)
	c.text(&e.Method, maxMethod)
	c.text(&e.Path, maxPath)
	c.text(&e.SKU, maxText)
	c.text(&e.User, maxUser)
	for _, name := range [...]*string{&e.Route, &e.Serial, &e.Detail.Operand, &e.Limit, &e.Version, &e.Target} {
		c.name(name)
	}
	number(c, &e.Gate, 0)
	number(c, &e.Status, 0)
	number(c, &e.Reason, 0)
	number(c, &e.Detail.Cause, 0)
	number(c, &e.Observed, 0)
	number(c, &e.Wait, 0)
	c.flag(&e.Sent)
	number(c, &e.Outcome, 0)
	c.flag(&e.Reserved)
	number(c, &e.Order, 0)
	number(c, &e.Deadline, 0)
	number(c, &e.BytesIn, 0)
	number(c, &e.BytesOut, 0)
}

// number codes n as the difference to base.
func number[T ~int | ~int64 | ~uint8](c *coder, n *T, base T) {
	if !c.reads {
		c.bytes = binary.AppendVarint(c.bytes, int64(*n-base))
		return
	}
	read, size := binary.Varint(c.bytes)
	c.bytes = c.bytes[size:]
	*n = base + T(read)
}

func (c *coder) flag(f *bool) {
	n := 0
	if *f {
		n = 1
	}
	number(c, &n, 0)
	*f = n == 1
}

// text codes t; one of more than limit bytes is left out.
func (c *coder) text(t *[]byte, limit int) {
	if c.reads {
		*t = c.read()
		return
	}
	if len(*t) > limit {
		*t = nil
	}
	c.bytes = append(binary.AppendUvarint(c.bytes, uint64(len(*t))), *t...)
}

// name codes a text of the configuration, or a serial.
func (c *coder) name(s *string) {
	if c.reads {
		t := c.read()
		*s = unsafe.String(unsafe.SliceData(t), len(t)) // no copy: pages do not change
		return
	}
	c.bytes = append(binary.AppendUvarint(c.bytes, uint64(len(*s))), *s...)
}

// read reads a text.
func (c *coder) read() []byte {
	n, size := binary.Uvarint(c.bytes)
	text, rest := c.bytes[size:size+int(n):size+int(n)], c.bytes[size+int(n):]
	c.bytes = rest
	return text
}

// address codes the client's address; that of a client on a Unix socket is empty.
func (c *coder) address(e *metrics.AccessRecord) {
	if c.reads {
		_ = e.Client.UnmarshalBinary(c.read()) // as AppendBinary wrote it
		return
	}
	var room [32]byte
	text, _ := e.Client.AppendBinary(room[:0])
	c.text(&text, len(text))
}
