package settler

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"time"

	"sluice/config"
	"sluice/internal/doctor"
	"sluice/settle/sqlstore"
)

const (
	checkWithin    = 10 * time.Second
	disputesWithin = 3 * time.Second
	clocksApart    = 2 * time.Second // more is a warning
)

// Check tries the databases of [settle], within 10 s, and reports whether a settler could work with them. It changes
// nothing. The gate's own checks leave the database out: the gate never opens it.
func Check(ctx context.Context, o *doctor.Report, c *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if c.Settle.Webhook.URL != "" {
		checkWebhook(ctx, o, c.Settle.Webhook)
	}
	var faults []error
	for _, name := range c.Settle.HomeNames() {
		faults = append(faults, checkHome(ctx, o, c.AtHome(name)))
	}
	checkDisputes(ctx, o, c)
	return errors.Join(faults...)
}

// checkDisputes compares the homes of the file with the marks of the ledgers. That Redis is away is told elsewhere.
func checkDisputes(ctx context.Context, o *doctor.Report, c *config.Config) {
	homes, err := OpenHomes(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return
	}
	defer homes.Close()
	ctx, cancel := context.WithTimeout(ctx, disputesWithin)
	defer cancel()
	for _, s := range homes {
		all, err := s.Disputes(ctx)
		if err != nil {
			return
		}
		for _, text := range all {
			o.Fail("settle", "%s", text)
		}
	}
}

// checkHome tries the database of one home.
func checkHome(ctx context.Context, o *doctor.Report, c *config.Config) error {
	if !fileExists(c) {
		o.OK("settle", "%s is made by sluice-settle run", c.Settle.Database)
		return nil
	}
	store, err := openDatabase(c)
	if err != nil {
		return err
	}
	defer store.Close()
	switch err := store.CheckSchema(ctx); {
	case errors.Is(err, sqlstore.ErrSchema):
		o.Fail("settle", "%s: %v", c.Settle.Database, err)
		return nil
	case err != nil:
		remedy := "start it"
		if store.Embedded() {
			remedy = "mend the file"
		}
		o.Fail("settle", "%s: %v; orders go on, and their changes stay in Redis; %s, or correct [settle]",
			c.Settle.Database, err, remedy)
		return nil
	}
	if err := checkJobs(ctx, c); err != nil {
		o.Fail("settle", "%s: %v", c.Settle.Database, err)
		return nil
	}
	missing := store.CheckRights(ctx)
	for _, what := range missing {
		o.Fail("settle", "the account may not do what a settler does: %s; grant it SELECT, INSERT, UPDATE and DELETE", what)
	}
	if q := c.Settle.OrdersQuery; q != "" {
		if err := store.CheckOrdersQuery(ctx, q); err != nil {
			o.Fail("settle", "settle.orders_query: %v", err)
		}
	}
	if q := c.Settle.Paid.Query; q != "" {
		if err := store.CheckPaidQuery(ctx, q); err != nil {
			o.Fail("settle", "settle.paid.query: %v", err)
		}
	}
	checkClock(ctx, o, store)
	if len(missing) == 0 {
		o.OK("settle", "%s has the tables of this version, and the account may change them", c.Settle.Database)
	}
	return nil
}

// checkWebhook connects, with TLS where the URL says so. It sends no request: one could have an effect.
func checkWebhook(ctx context.Context, o *doctor.Report, w config.SettleWebhook) {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	u, err := url.Parse(w.URL)
	if err != nil {
		o.Fail("settle", "settle.webhook.url: %v", err)
		return
	}
	dial, port := (&net.Dialer{}).DialContext, "80"
	if u.Scheme == "https" {
		dial, port = (&tls.Dialer{}).DialContext, "443"
	}
	if u.Port() != "" {
		port = u.Port()
	}
	connection, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		o.Fail("settle", "the webhook cannot be reached; its changes stay in Redis; start it, or correct "+
			"settle.webhook.url: %v", err)
		return
	}
	_ = connection.Close()
	o.OK("settle", "the webhook at %s takes connections; no request was sent", u.Host)
}

// checkClock compares the clocks, to half of the time that it takes to ask.
func checkClock(ctx context.Context, o *doctor.Report, store *sqlstore.Store) {
	before := time.Now()
	there, err := store.Clock(ctx)
	took := time.Since(before)
	if err != nil {
		o.Fail("settle", "%v", err)
		return
	}
	if apart := there.Sub(before.Add(took / 2)); max(apart, -apart)-took/2 > clocksApart {
		o.Warn("settle", "the clock of the database is %s from this machine's; lag is measured wrongly; "+
			"synchronize both by NTP", apart.Round(time.Millisecond))
	}
}
