package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

// operateWithin bounds a command that asks a gateway or Redis, lists included.
const operateWithin = 10 * time.Second

// target says on what a command works: the Redis of a configuration, or a running gateway.
type target struct {
	Config, Admin, TokenFile string

	asked     string // address of the gateway, by --admin or by the file; "" = the file has none
	configSet bool
	fileTold  bool // the gateway's answer says what is wrong with the file
}

// addTo adds the flags that choose the target.
func (t *target) addTo(cmd *cobra.Command, flags *pflag.FlagSet, about string) {
	t.Config = "config.toml"
	cli.ConfigFlag(cmd, flags, &t.Config, about)
	flags.StringVar(&t.Admin, "admin", "", "admin `address` of a running gateway, instead of --config")
	flags.StringVar(&t.TokenFile, "token-file", "", "`file` with the token for --admin")
}

// parentOf is a command with sub-commands, whose flags choose the target of all of these.
func parentOf(use, short, about string) (*cobra.Command, *target) {
	cmd, at := cli.Parent(use, short), new(target)
	at.addTo(cmd, cmd.PersistentFlags(), about)
	return cmd, at
}

// What the flag --config names.
const (
	aboutGateway = "configuration `file` of the running gateway"
	aboutRedis   = "work on the Redis of this configuration `file`"
)

// check reports flags that contradict each other.
func (t *target) check(cmd *cobra.Command) error {
	t.configSet = cmd.Flags().Changed("config")
	switch {
	case t.Admin != "" && t.configSet:
		return cli.Misuse(cmd, errors.New("--config and --admin: name one of them"))
	case t.TokenFile != "" && t.Admin == "":
		return cli.Misuse(cmd, errors.New("--token-file belongs to --admin"))
	}
	return nil
}

// remote is a client of the gateway that --admin names.
func (t *target) remote() (c adminclient.Client, err error) {
	c.Base, c.HTTP = adminclient.NewHTTP(t.Admin, operateWithin)
	if t.TokenFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(t.TokenFile)
	c.Token = strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff")) // editors put it before a text
	return c, err
}

// open is a client of the control API of --admin, or of the same API within this process over the Redis of --config.
// done must be called in the end.
func (t *target) open() (c adminclient.Client, done func(), err error) {
	if t.Admin != "" {
		c, err = t.remote()
		return c, func() {}, err
	}
	loaded, err := config.Load(t.Config, os.LookupEnv)
	if err != nil {
		admin, _ := config.AdminOf(t.Config, os.LookupEnv)
		return c, nil, fmt.Errorf("%w\ncannot read where Redis is; correct the file, or ask a running gateway: --admin %s",
			err, adminclient.LocalAddress(admin.Listen))
	}
	t.asked = adminclient.LocalAddress(loaded.Admin.Listen)
	if loaded.Stock.Source != "redis" {
		return c, nil, noStockHere(t.Config, loaded)
	}
	return adminclient.Local(loaded)
}

// noStockHere says who knows a stock that is not in Redis.
func noStockHere(file string, c *config.Config) error {
	switch {
	case c.Stock.Source == "off" && c.Admin.Listen != "":
		return fmt.Errorf("stock.source of %s is \"off\": no stock is kept, and only a running gateway knows its sales; add "+
			"--admin %s", file, c.Admin.Listen)
	case c.Admin.Listen == "":
		return fmt.Errorf("stock.source of %s is %q, which only a running gateway knows, and its admin.listen is \"\": "+
			"it cannot be asked", file, c.Stock.Source)
	}
	return fmt.Errorf("stock.source of %s is %q: only a running gateway knows that stock; add --admin %s",
		file, c.Stock.Source, c.Admin.Listen)
}

// openRunning is a client of a running gateway: that of --admin, or where the configuration has it listen.
func (t *target) openRunning() (adminclient.Client, error) {
	t.asked = t.Admin
	if t.Admin != "" {
		return t.remote()
	}
	var admin config.Admin
	c, err := config.Load(t.Config, os.LookupEnv)
	switch {
	case err == nil && c.Admin.Listen == "":
		return adminclient.Client{}, c.Errorf("admin.listen",
			`it is "": the gateway cannot be asked; write an address like "127.0.0.1:8090", and restart it`)
	case err == nil:
		admin = c.Admin
	default:
		if admin, err = t.brokenFile(err); err != nil {
			return adminclient.Client{}, err
		}
	}
	t.asked = adminclient.LocalAddress(admin.Listen)
	to := adminclient.Client{Token: string(admin.Token)}
	to.Base, to.HTTP = adminclient.NewHTTP(admin.Listen, operateWithin)
	return to, nil
}

// brokenFile is where a gate is asked whose file has the error problem: a running gate goes on without it.
func (t *target) brokenFile(problem error) (config.Admin, error) {
	admin, err := config.AdminOf(t.Config, os.LookupEnv)
	if err != nil {
		return admin, fmt.Errorf("%w\ncannot read admin.listen from it; pass --admin, such as --admin %s", problem,
			admin.Listen)
	}
	if !t.fileTold {
		fmt.Fprintln(os.Stderr, problem)
	}
	fmt.Fprintf(os.Stderr, "%s is broken; a running gateway keeps the configuration before. Asking it at %s\n",
		t.Config, admin.Listen)
	return admin, nil
}

// callAPI calls a running gateway once.
func (t *target) callAPI(cmd *cobra.Command, method, path string, in, out any) error {
	if err := t.check(cmd); err != nil {
		return err
	}
	to, err := t.openRunning()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), operateWithin)
	defer cancel()
	return to.Call(ctx, method, path, in, out)
}

// call asks the API of --admin or of --config once.
func (t *target) call(cmd *cobra.Command, method, path string, in, out any, header ...string) error {
	if err := t.check(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), operateWithin)
	defer cancel()
	to, done, err := t.open()
	if err != nil {
		return err
	}
	defer done()
	return to.Call(ctx, method, path, in, out, header...)
}

// skuFlag adds --sku, completed by the SKUs on sale.
func skuFlag(cmd *cobra.Command, to *string, usage string) {
	cmd.Flags().StringVar(to, "sku", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("sku", func(cmd *cobra.Command, _ []string, word string) ([]string,
		cobra.ShellCompDirective) {
		return cli.CompleteBy((*config.Config).SKUsOnSale)(cmd, nil, word)
	})
}
