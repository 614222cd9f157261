package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sluice"
)

type initCommand struct {
	File string `arg:"" optional:"" default:"config.toml" help:"Where to write it; - = standard output."`
	Full bool   `help:"The commented reference: every key, its default, its meaning."`
}

// starter is what most shops need to say to begin with: observe before rejecting anything.
const starter = `mode = "observe"                        # count rejections only; then "enforce"
upstream.targets = ["http://127.0.0.1:9000"]     # your shop
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order" # what an order looks like
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "everything-else"
match = "/"
gate = "pass"
[stock]
source = "redis"
[stock.layout]
key = "seckill:stock:$sku"              # your own key; sluice init --full shows the rest
`

func (i *initCommand) Run() error {
	text := starter
	if i.Full {
		text = sluice.Reference
	}
	if i.File == "-" {
		fmt.Print(text)
		return nil
	}
	f, err := os.OpenFile(i.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and was left as it is; name another file, or - for standard output", i.File)
	}
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", i.File, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", i.File, err)
	}
	fmt.Printf("wrote %s\nnext: sluice check %s\n", i.File, i.File)
	return nil
}
