package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sluice"
	"sluice/internal/cli"
)

// starter is what most shops need to begin with: observe before rejecting anything.
const starter = `name = ""                               # of this shop in Redis, the same on all its instances
mode = "observe"                        # count rejections only; then "enforce"
upstream.targets = ["http://127.0.0.1:9000"]     # your shop
responses.languages = ["en", "zh-CN"]   # by Accept-Language; the first is for programs that send none
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
# redis.addresses = ["127.0.0.1:6379"]  # where Redis is
[stock.layout]
key = "seckill:stock:$sku"              # your own key; sluice init --full shows the rest
`

// starterInChinese is starter with Chinese comments, for a shop whose programs get Chinese.
var starterInChinese = strings.NewReplacer(
	"of this shop in Redis, the same on all its instances", "本商城在 Redis 中的名字，所有实例相同",
	`count rejections only; then "enforce"`, `只统计本该拒绝的请求；确认无误后改为 "enforce"`,
	"your shop", "你的商城",
	`"en", "zh-CN"`, `"zh-CN", "en"`,
	"by Accept-Language; the first is for programs that send none", "按 Accept-Language；没有带它的程序用第一个",
	"what an order looks like", "下单请求是什么样的",
	"where Redis is", "Redis 的地址",
	"your own key; sluice init --full shows the rest", "你自己的 key；其余的键：sluice init --full --lang zh",
).Replace(starter)

func newInit() *cobra.Command {
	var full bool
	lang := "en"
	cmd := &cobra.Command{
		Use: "init [file]", Short: "Write a first configuration file.", Args: cli.Exactly,
		Long: "Write a first configuration file: config.toml, unless another is named. - = standard output.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, reference := starter, sluice.Reference
			if lang != "en" {
				text, reference = starterInChinese, sluice.ReferenceInChinese
			}
			if full {
				text = reference
			}
			text = named(text)
			return writeConfig(cmd.OutOrStdout(), argument(args, "config.toml"), text)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "the commented reference: every key, its default, its meaning")
	cli.ChoiceFlag(cmd, cmd.Flags(), &lang, "lang", "language of the comments", "en", "zh", "zh-CN")
	return cmd
}

// named is a text of this package with a name of its own: shops that share a Redis must not share a name.
func named(text string) string {
	name := fmt.Sprintf("name = \"shop-%04x\"", rand.N(1<<16))
	head, rest, _ := strings.Cut(text, "name = \"\"")
	return head + name + rest[min(len(rest), len(name)-len(`name = ""`)):]
}

// argument is the first of args, or what is usual.
func argument(args []string, usual string) string {
	if len(args) > 0 {
		return args[0]
	}
	return usual
}

func writeConfig(out io.Writer, path, text string) error {
	if path == "-" {
		_, err := fmt.Fprint(out, text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and was left as it is; name another file, or - for standard output", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = fmt.Fprintf(out, "wrote %s\nnext: sluice check %s\n", path, path)
	return err
}
