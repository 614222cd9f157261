package redistest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Between stands between clients and the server at addr until the test ends, and returns where. carry is asked of each
// connection how its bytes go there and back; nil is as they come. When one way ends, so does the connection, both its
// halves.
func Between(t testing.TB, addr string, carry func(client, server *net.TCPConn) (there, back func())) string {
	t.Helper()
	ear, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { ear.Close(); end() })
	all.Go(func() {
		for {
			client, err := ear.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			there, back := carry(client.(*net.TCPConn), server.(*net.TCPConn))
			hangUp := sync.OnceFunc(func() { client.Close(); server.Close() })
			context.AfterFunc(ctx, hangUp)
			for _, way := range []func(){orCopy(there, server, client), orCopy(back, client, server)} {
				all.Go(func() { defer hangUp(); way() })
			}
		}
	})
	return ear.Addr().String()
}

func orCopy(way func(), to io.Writer, from io.Reader) func() {
	if way != nil {
		return way
	}
	return func() { _, _ = io.Copy(to, from) }
}

// Pass passes on what from says, piece by piece, as long as see returns true of it. A client writes a command, and a
// pipeline, in one piece.
func Pass(to io.Writer, from io.Reader, see func(piece []byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !see(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
