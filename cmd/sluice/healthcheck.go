package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"sluice/config"
)

type healthcheckCommand struct {
	Config string `help:"Take ops.listen from this file, when it is there." default:"/etc/sluice/config.toml" placeholder:"FILE"`
	Ops    string `help:"Or ask this address." placeholder:"127.0.0.1:8091"`
	Ready  bool   `help:"Ask whether it is ready, not only alive."`
}

func (h *healthcheckCommand) Run() error {
	address, err := h.address()
	if err != nil {
		return err
	}
	path := "/livez"
	if h.Ready {
		path = "/readyz?verbose"
	}
	base, client := caller(address, 2*time.Second)
	resp, err := client.Get(base + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	fmt.Print(string(text))
	if resp.StatusCode != http.StatusOK {
		return errSaid
	}
	return nil
}

// address is where to ask: as said, else as configured, else the default. An address that means every
// interface is asked on this one.
func (h *healthcheckCommand) address() (string, error) {
	address := h.Ops
	if address == "" {
		address = config.Default().Ops.Listen
		if _, err := os.Stat(h.Config); err == nil {
			c, err := config.Load(h.Config, os.LookupEnv)
			if err != nil {
				return "", err
			}
			address = c.Ops.Listen
		}
	}
	if address == "" {
		return "", fmt.Errorf(`ops.listen of %s is "": there is nobody to ask`, h.Config)
	}
	if strings.HasPrefix(address, "unix:") {
		return address, nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
