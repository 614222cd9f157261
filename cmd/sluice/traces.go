package main

import (
	"log/slog"

	"sluice/config"
	"sluice/tracing"
)

// openTraces begins to tell a collector of requests; nil when c names none.
func openTraces(c *config.Config, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Traces.Endpoint == "" {
		return nil, nil
	}
	t, err := tracing.New(tracing.Options{Endpoint: c.Traces.Endpoint, OneIn: c.Traces.OneIn, Service: c.Traces.Service, Version: version, Log: log})
	if err != nil {
		return nil, c.Errorf("traces.endpoint", "%v", err)
	}
	return t, nil
}
