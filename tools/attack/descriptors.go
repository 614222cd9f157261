package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

var descriptors = scenario{
	name:        "descriptors",
	description: "clients open more connections than sluice may open files, while its health is asked",
	run:         attackDescriptors,
}

const (
	filesAllowed  = 2048
	clientsOpened = 5000
	newClients    = 50
)

func attackDescriptors(ctx context.Context, e *env) ([]row, error) {
	e.files = filesAllowed
	gate, err := e.sluice(ctx, pageRoutes)
	e.files = 0
	if err != nil {
		return nil, err
	}
	failed, asked, worst := 0, 0, time.Duration(0)
	opened := connections(clientsOpened)
	for i := range opened {
		c, err := dial(ctx, i, gate.address)
		if err != nil {
			return nil, fmt.Errorf("client %d: %w", i, err)
		}
		defer c.Close()
		if i%20 != 0 {
			continue
		}
		begun := time.Now()
		if answer := askOnce(ctx, i, gate.ops, "/livez"); answer != "200" {
			failed++
		}
		asked, worst = asked+1, max(worst, time.Since(begun))
	}
	hangs := 0
	for i := range newClients {
		if strings.Contains(askOnce(ctx, opened+i, gate.address, "/page"), "timeout") {
			hangs++
		}
	}
	gate.stop()
	return []row{
		{figure: "connections opened, of files allowed", sluice: fmt.Sprintf("%d of %d", opened, filesAllowed)},
		{figure: "/livez not answered", sluice: fmt.Sprintf("%d of %d", failed, asked), bound: "0", broken: failed > 0},
		{figure: "the slowest of them", sluice: milliseconds(worst)},
		{figure: "new clients that hear nothing",
			sluice: fmt.Sprintf("%d of %d", hangs, newClients), bound: "0", broken: hangs > 0},
	}, nil
}

// askOnce asks on a connection of its own, and tells the status or the fault.
func askOnce(ctx context.Context, i int, address, path string) string {
	c, err := dial(ctx, i, address)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"); err != nil {
		return err.Error()
	}
	return readAnswer(bufio.NewReader(c))
}
