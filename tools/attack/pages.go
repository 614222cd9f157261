package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

var slowReaders = scenario{
	name:        "slow-readers",
	description: "400 clients read a file of 4 MiB at a few bytes a second, while others ask for 4,000 pages",
	run:         attackByReading,
}

var slowUploads = scenario{
	name:        "slow-uploads",
	description: "400 clients upload 4 MiB at 29 KB/s each, while others ask for 4,000 pages",
	run:         attackByUploading,
}

var burst = scenario{
	name:        "burst",
	description: "1,000 and 9,500 clients ask for a page at the same moment",
	run:         attackByBurst,
}

const (
	slowOnes    = 400
	fileSize    = 4 << 20 // bytes; more than the kernel keeps for one connection
	manyPages   = 4000
	pageWorkers = 16
	patience    = 30 * time.Second
	pageRoutes  = fastConnections + "limits.connection.max_connections = 10000\nstock.source = \"off\"\n" +
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n"
)

func page(dst []byte, _ int) []byte {
	return append(dst, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"...)
}

// connect has n connections to p, from the addresses of the clients from first on.
func connect(p *peer, first, n int) *load.Connections {
	return load.NewConnections(n, func(ctx context.Context, i int) (net.Conn, error) {
		return dial(ctx, first+i, p.address)
	})
}

// attackBoth plays one attack on sluice with some settings, and on nginx.
func (e *env) attackBoth(ctx context.Context, settings string,
	play func(ctx context.Context, p *peer) (*tally, error)) (ours, theirs *tally, err error) {
	gate, err := e.sluice(ctx, settings)
	if err != nil {
		return nil, nil, err
	}
	ours, err = play(ctx, gate)
	gate.stop()
	if err != nil {
		return nil, nil, err
	}
	beside, err := e.nginx(ctx)
	if err != nil {
		return nil, nil, err
	}
	theirs, err = play(ctx, beside)
	beside.stop()
	return ours, theirs, err
}

func lostRow(figure string, ours, theirs *tally) row {
	text := fmt.Sprintf("%d", ours.failed())
	for why := range ours.lost {
		text += " " + why
	}
	return row{figure: figure, sluice: text, nginx: fmt.Sprintf("%d", theirs.failed()), bound: "0",
		broken: ours.failed() > 0}
}

func attackByReading(ctx context.Context, e *env) ([]row, error) {
	return attackPages(ctx, e, func(ctx context.Context, p *peer, i int) (net.Conn, error) {
		return startReading(ctx, i, p.address, "/file", 4096)
	})
}

func attackByUploading(ctx context.Context, e *env) ([]row, error) {
	body := make([]byte, fileSize)
	return attackPages(ctx, e, func(ctx context.Context, p *peer, i int) (net.Conn, error) {
		go func() {
			for ; ctx.Err() == nil; periodic.Pause(ctx, 100*time.Millisecond) {
				sendSlowly(ctx, i, p.address, "/upload", body)
			}
		}()
		return nil, nil
	})
}

// attackPages asks for pages beside slow clients, which start begins and whose connections it may return.
func attackPages(ctx context.Context, e *env,
	start func(ctx context.Context, p *peer, i int) (net.Conn, error)) ([]row, error) {
	n := manyPages
	if e.short {
		n /= 4
	}
	ours, theirs, err := e.attackBoth(ctx, pageRoutes, func(ctx context.Context, p *peer) (*tally, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for i := range connections(slowOnes) {
			c, err := start(ctx, p, i)
			if err != nil {
				return nil, err
			}
			if c != nil {
				defer c.Close()
			}
		}
		periodic.Pause(ctx, 3*time.Second) // all of them have begun
		return ask(ctx, connect(p, 10_000, pageWorkers), make([]time.Duration, n), page, 10*time.Minute)
	})
	if err != nil {
		return nil, err
	}
	return []row{lostRow(fmt.Sprintf("pages lost, of %d", n), ours, theirs),
		{figure: "the slowest page", sluice: millis(ours.took.Max), nginx: millis(theirs.took.Max)}}, nil
}

// startReading asks for a file, and reads a few bytes of it a second until the connection is closed. The kernel keeps
// about so many bytes for it.
func startReading(ctx context.Context, i int, address, path string, keeps int) (net.Conn, error) {
	from := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/150))},
		Control: func(_, _ string, raw syscall.RawConn) error { // the kernel is not to read for it
			return raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, keeps)
			})
		},
	}
	c, err := from.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	go func() {
		var piece [64]byte
		_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: shop\r\n\r\n")
		for ; err == nil; periodic.Pause(ctx, time.Second) {
			_, err = c.Read(piece[:])
		}
	}()
	return c, nil
}

func attackByBurst(ctx context.Context, e *env) (rows []row, err error) {
	sizes, runs := []int{1000, 9500}, 3
	if e.short {
		sizes, runs = sizes[:1], 1
	}
	for _, wanted := range sizes {
		n := connections(wanted)
		var ratios []float64
		for range runs {
			ours, theirs, err := e.attackBoth(ctx, pageRoutes, func(ctx context.Context, p *peer) (*tally, error) {
				return ask(ctx, connect(p, 0, n), make([]time.Duration, n), page, patience)
			})
			if err != nil {
				return nil, err
			}
			ratios = append(ratios, ours.took.Max/max(theirs.took.Max, 1e-3))
			rows = append(rows, lostRow(fmt.Sprintf("pages lost, of %d at once", n), ours, theirs), row{
				figure: "the slowest of them", sluice: millis(ours.took.Max), nginx: millis(theirs.took.Max),
			})
		}
		slices.Sort(ratios)
		middle := ratios[runs/2]
		rows = append(rows, row{figure: "the slowest, times nginx's, the middle run", bound: "<= 2",
			sluice: fmt.Sprintf("%.1f", middle), broken: !e.short && middle > 2})
	}
	return rows, nil
}
