package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/cli"
)

// settleBinary is the program that opens databases. This one does not.
const settleBinary = "sluice-settle"

// newSettle names the program that has the commands of settlement.
func newSettle() *cobra.Command {
	return &cobra.Command{
		Use: "settle", Short: "Settlement is the program sluice-settle.", Args: cobra.ArbitraryArgs, Hidden: true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"run"}
			}
			return &cli.UsageError{Command: cmd.CommandPath(), Moved: true, Err: fmt.Errorf(
				"settlement is a program of its own: use %s %s", settleBinary, strings.Join(args, " "))}
		},
	}
}

// askSettlement runs a command of sluice-settle, from the folder of this program or from PATH, and returns its output.
func askSettlement(ctx context.Context, config string, args ...string) ([]byte, error) {
	path, err := settlementPath()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{args[0], "--config", config}, args[1:]...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	said := strings.TrimSpace(complaint.String())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && said != "":
		return nil, errors.New(strings.TrimPrefix(said, settleBinary+": "))
	case err != nil:
		return nil, fmt.Errorf("run %s: %w", path, err)
	case said != "":
		fmt.Fprintln(os.Stderr, said)
	}
	return out.Bytes(), nil
}

func settlementPath() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), settleBinary); isFile(path) {
			return path, nil
		}
	}
	path, err := exec.LookPath(settleBinary)
	if err != nil {
		return "", fmt.Errorf("cannot ask the settlement's database: %w; install %s beside sluice", err, settleBinary)
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// settledOrders are orders that the settlement's database has.
func settledOrders(ctx context.Context, config string, args ...string) (orders []admin.Order, err error) {
	text, err := askSettlement(ctx, config, append([]string{"orders"}, args...)...)
	if err != nil {
		return nil, err
	}
	for lines := json.NewDecoder(bytes.NewReader(text)); ; {
		var o admin.Order
		if err := lines.Decode(&o); errors.Is(err, io.EOF) {
			return orders, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what %s has printed: %w", settleBinary, err)
		}
		orders = append(orders, o)
	}
}
