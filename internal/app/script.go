package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"sluice/config"
	"sluice/internal/app/orders"
	"sluice/internal/app/stores"
	"sluice/stockgate/ledger"
	"sluice/stockgate/script"
)

// openScript makes the Reserver of a script, and says at once what the ledger would keep and it cannot.
func openScript(c *config.Config, now func() int64, log *slog.Logger) (*script.Reserver, error) {
	s, errs := stores.CompileScript(c)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	keep, err := keptOrders(c)
	if err != nil {
		return nil, err
	}
	r, err := script.New(script.Options{
		Script: s, Redis: stores.RedisOptions(c), Hold: cmp.Or(c.Stock.Script.TTL, c.Stock.Reserve.ReservationTTL),
		Keep: keep, Memory: c.Stock.PollInterval,
		MaxMemory: c.Stock.SoldOutTTL, Named: stores.LabelledSKUs(c), MetricSKUs: c.Ops.MetricsMaxSKUs, Now: now, Log: log,
	})
	if err != nil {
		return nil, c.Errorf("stock.script", "%v", err)
	}
	if err := r.Fit(context.Background()); errors.Is(err, script.ErrApart) { // a Redis that is away is waited for
		r.Close(context.Background())
		return nil, c.Errorf("stock.script.keys", "%v", err)
	}
	log.Warn("orders are reserved by the shop's own script: " + stores.ScriptLimitations(s) + "; see docs/scripts.md")
	return r, nil
}

// keptOrders is how orders of the script are kept until they are decided; nil = they are not.
func keptOrders(c *config.Config) (*script.Keep, error) {
	if c.Stock.Script.TTL == 0 {
		return nil, nil
	}
	status, err := ledger.NewStatusURL(c.Stock.Reserve.StatusURL)
	if err != nil {
		return nil, c.Errorf("stock.reserve.status_url", "%v", err)
	}
	return &script.Keep{
		Prefix: c.Stock.Reserve.Apart, Status: status, OnNotFound: c.Stock.Reserve.OnNotFound,
		Released: stores.KeepReleased, Timeout: c.Stock.Redis.ConnectTimeout + c.Stock.Redis.Timeout, Owner: status.Close,
	}, nil
}

// closeScript gives back what is owed and ends the Reserver.
func (g *Gateway) closeScript() {
	ctx, cancel := context.WithTimeout(context.Background(), orders.CloseTimeout)
	defer cancel()
	g.script.Close(ctx)
}
