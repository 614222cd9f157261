package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
	"sluice/room"
)

func newRoom() *cobra.Command {
	cmd, at := parentOf("room", "Show the waiting rooms, and operate one.", aboutGateway)
	state := func(word, use, short string) *cobra.Command {
		return newRoomChange(at, use+" <name>", short, func([]string) (map[string]any, error) {
			return map[string]any{"state": word}, nil
		})
	}
	cmd.AddCommand(newRoomStatus(at), newRoomReport(at),
		state("hold", "hold", "Call no more people. Those who have a pass can order."),
		state("open", "resume", "Let the room go by itself again."),
		state("drain", "drain", "Let no more people join. Those who wait are called."),
		state("off", "off", "Take the room out of force: orders need no pass."),
		newRoomChange(at, "rate <name> <people>", "Call so many people a second at most; 0 is the configured number.",
			func(args []string) (map[string]any, error) {
				rate, err := strconv.ParseFloat(args[1], 64)
				if err != nil {
					return nil, fmt.Errorf("%q is no number of people a second; write it like 100", args[1])
				}
				return map[string]any{"rate": rate}, nil
			}),
		newRoomChange(at, "message <name> <text>", "Show a message to those who wait; an empty one takes it away.",
			func(args []string) (map[string]any, error) { return map[string]any{"message": args[1]}, nil }),
		newRoomBeacon(at), newRoomVerify())
	return cmd
}

func newRoomStatus(at *target) *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use: "status", Short: "Show the waiting rooms.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all struct {
				Rooms []admin.Room `json:"rooms"`
			}
			if err := at.callAPI(cmd, "GET", "/rooms", nil, &all); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, all)
			}
			if len(all.Rooms) == 0 {
				fmt.Fprintln(os.Stderr, "no waiting room is configured")
				return nil
			}
			rows := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(rows, "NAME\tPHASE\tSTATE\tWAITING\tCALLED\tCLAIMED\tUSED\tEXPIRED\tFREE\tHELD\tOFF SALE")
			for i := range all.Rooms {
				printRoom(rows, &all.Rooms[i])
			}
			return rows.Flush()
		},
	}, &asJSON)
}

func printRoom(w io.Writer, r *admin.Room) {
	free := "?"
	if r.Free >= 0 {
		free = strconv.FormatInt(r.Free, 10)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%d\n", r.Name, r.Phase, r.State, r.Waiting, r.Called, r.Claimed,
		r.Used, r.Expired, free, r.Held, r.OffSale)
}

// roomNames completes the name of a room.
func roomNames(c *config.Config) (names []string) {
	for i := range c.Rooms {
		names = append(names, c.Rooms[i].Name)
	}
	return names
}

// newRoomChange is a command that changes a room of a running gateway, and so of all instances.
func newRoomChange(at *target, use, short string, want func(args []string) (map[string]any, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := want(args)
			if err != nil {
				return cli.Misuse(cmd, err)
			}
			return changeRoom(cmd, at, args[0], in)
		},
		ValidArgsFunction: cli.CompleteBy(roomNames),
	}
}

func changeRoom(cmd *cobra.Command, at *target, name string, in map[string]any) error {
	var now admin.Room
	if err := at.callAPI(cmd, "POST", "/rooms/"+adminclient.Segment(name), in, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "room %s changed; all instances see it within a second\n", now.Name)
	return err
}

func newRoomBeacon(at *target) *cobra.Command {
	var round int64
	var value string
	cmd := &cobra.Command{
		Use: "beacon <name>", Short: "Make the draw of a room, with the public randomness that it waits for.", Args: cli.Exactly,
		Long: "Make the draw of a room, after the start of its sale. The round was published before, as beacon_round: it\n" +
			"is the first one after the start. --signature is that of the round in hexadecimal digits, as the beacon\n" +
			"publishes it; the gate checks it by the key that was published with the round, and asks no server.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if value == "" || round == 0 {
				return cli.Misuse(cmd,
					errors.New("--round and --signature: both are needed; \"sluice room report\" tells the round"))
			}
			return changeRoom(cmd, at, args[0], map[string]any{"beacon": value, "round": round})
		},
		ValidArgsFunction: cli.CompleteBy(roomNames),
	}
	cmd.Flags().Int64Var(&round, "round", 0, "`round` of the beacon")
	cmd.Flags().StringVar(&value, "signature", "", "what it published, in `hexadecimal` digits")
	return cmd
}

// maxRoomRecord bounds a record that is read, in bytes.
const maxRoomRecord = 4 << 20

func newRoomVerify() *cobra.Command {
	var user, from string
	cmd := &cobra.Command{
		Use: "verify", Short: "Compute from published data alone where a user stood in a draw.", Args: cli.Exactly,
		Long: "Compute from published data alone where a user stood in a draw, and when the user was called.\n" +
			"--record is what /.sluice/room/NAME/draw has: its URL, or a file.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" || from == "" {
				return cli.Misuse(cmd, errors.New("--user and --record: both are needed"))
			}
			text, err := readRecord(from)
			if err != nil {
				return err
			}
			var record room.Record
			if err := json.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("%s: it is no record of a draw: %w", from, err)
			}
			v, err := record.Verify(user)
			if err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			printVerdict(cmd.OutOrStdout(), user, &record, v)
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "the `user` as the shop knows it")
	cmd.Flags().StringVar(&from, "record", "", "`URL` or file of the published record")
	return cmd
}

func readRecord(from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		return os.ReadFile(from)
	}
	client := http.Client{Timeout: operateWithin}
	resp, err := client.Get(from)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRoomRecord))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d; write the address like https://shop/.sluice/room/NAME/draw", from,
			resp.StatusCode)
	}
	return text, err
}

func printVerdict(w io.Writer, user string, r *room.Record, v room.Verdict) {
	fmt.Fprintf(w, "seed       its SHA-256 is the commitment %s\n", r.Draw.Commit)
	if r.Draw.DrawnBy == room.ByBeacon {
		fmt.Fprintf(w, "beacon     round %d, signed by the key %s,\n           published at %s, after the start at %s\n",
			r.Draw.BeaconRound, r.Draw.BeaconKey, clock(r.Draw.BeaconAt), clock(r.StartsAt))
	} else {
		fmt.Fprintln(w, "beacon     none: the shop has drawn, and the commitment alone stands")
	}
	if r.Draw.Redrawn > 0 {
		fmt.Fprintf(w, "redrawn    draws that had begun when the start was moved: %d; the seed is another one since\n",
			r.Draw.Redrawn)
	}
	fmt.Fprintf(w, "score      of %s: %d of %d\nplace      about %d of %d who joined before the start\n", user, v.Score,
		room.ScoreEnd, v.Place, r.Early)
	if v.CalledAt == 0 {
		fmt.Fprintln(w, "called     not yet: no published threshold is above the score")
		return
	}
	fmt.Fprintf(w, "called     at %s, if the user joined before the start\n", clock(v.CalledAt))
}

func clock(unixMS int64) string { return time.UnixMilli(unixMS).UTC().Format(time.RFC3339) }
