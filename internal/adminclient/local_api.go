package adminclient

import (
	"log/slog"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
)

// Local is a client of the API over the Redis of c. It waits for a slow Redis longer than shoppers would.
func Local(c *config.Config) (to Client, done func(), err error) {
	c = stores.WaitLonger(c)
	api := admin.API{Log: slog.New(slog.DiscardHandler)}
	var opened []func() error
	done = func() {
		for _, end := range opened {
			_ = end()
		}
	}
	if c.HasGate("check") || !c.UsesLedger() {
		r, err := stores.OpenShopStock(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return to, nil, err
		}
		opened = append(opened, r.Close)
		api.Store = stores.NewStore(r)
	}
	if c.UsesLedger() {
		r, err := stores.OpenLedger(c, true, slog.Default())
		if err != nil {
			done()
			return to, nil, err
		}
		opened = append(opened, r.Close)
		api.Ledgers = stores.NewLedgers(c, r, nil)
	}
	if len(c.Sales) > 0 {
		schedule, err := stores.OpenCommandSchedule(c, slog.New(slog.DiscardHandler))
		if err != nil {
			done()
			return to, nil, err
		}
		opened = append(opened, func() error { schedule.Close(); return nil })
		api.Sales = stores.Sales{Schedule: schedule}
	}
	return inProcess(api.Handler()), done, nil
}
