package arch

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// tutorialOutput is what the blocks of commands of the tutorial must print, in their order. "" = anything.
var tutorialOutput = []string{
	`/trial\n`, ``, oversold, ``,
	`sluice_observed_rejections_total\{reason="(window|concurrency|queue_timeout|sold_out)",route="order"\} [1-9]`,
	`route +order`, `(?m)^ +1?\d 201$`, `"reason":"sold_out"`, ``, `(?s)\b10 201\n.*10 sold`, `(?s)\b100 409\n.*confirmed`,
	``, `(?s)reason +[a-z_]+\n.*mode enforce`, ``,
}

// oversold is how many orders the naive shop has accepted, and what it then has left of 10 units: 30 and -20 where the
// crowd comes within 50 ms, and other numbers on a machine that is too slow for that.
const oversold = `(?s)\b(\d+) 201\n.*\n-(\d+)\n`

var shellBlock = regexp.MustCompile("(?sm)^```sh\n(.*?)^```$")

// The tutorial's commands run one after the other in one shell, as a reader types them. Only the ports and the two
// builds differ; and a reader sees when a program has started.
func TestTutorial_CommandsWork(t *testing.T) {
	runTutorial(t, "tutorial.md") // the Chinese page has the same commands: see below
}

func TestTutorial_IsTheSameInBothLanguages(t *testing.T) {
	comments := regexp.MustCompile(`(?m) +# .*$`)
	english := comments.ReplaceAllString(strings.Join(shellBlocks(t, "tutorial.md"), "---\n"), "")
	if chinese := comments.ReplaceAllString(strings.Join(shellBlocks(t, "tutorial.zh-CN.md"), "---\n"),
		""); english != chinese {
		t.Errorf("the commands differ:\n%s\n%s", english, chinese)
	}
}

func shellBlocks(t *testing.T, page string) (all []string) {
	for _, m := range shellBlock.FindAllStringSubmatch(read(t, filepath.Join(manual, page)), -1) {
		all = append(all, m[1])
	}
	return all
}

func runTutorial(t *testing.T, page string) {
	testkit.Nightly(t, "it builds sluice, drains it twice, and pauses as a reader does")
	for _, tool := range []string{"redis-server", "redis-cli", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	blocks := shellBlocks(t, page)
	if len(blocks) != len(tutorialOutput) {
		t.Fatalf("%d blocks of commands, %d expectations", len(blocks), len(tutorialOutput))
	}
	dir := t.TempDir()
	for name, source := range map[string]string{"sluice": "cmd/sluice", "naive": "examples/naive"} {
		do(t, root, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), "./"+source)
	}
	shell := exec.Command("bash", "-c", tutorialScript(t, blocks))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	parts := strings.Split(string(out), "-- block\n")
	for i, want := range tutorialOutput {
		if i+1 >= len(parts) || !regexp.MustCompile(want).MatchString(parts[i+1]) {
			t.Fatalf("block %d does not print %q:\n%s", i+1, want, out)
		}
		if want == oversold {
			m := regexp.MustCompile(want).FindStringSubmatch(parts[i+1])
			accepted, below := number(t, m[1]), number(t, m[2])
			if accepted-10 != below {
				t.Errorf("of 10 units %d were sold, and %d are left:\n%s", accepted, -below, out)
			}
		}
	}
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tutorialScript is the blocks as a script, with free ports in place of those of the page.
func tutorialScript(t *testing.T, blocks []string) string {
	port := func() string {
		_, port, err := net.SplitHostPort(testkit.FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	redis, shop, listen, ops, admin := port(), port(), port(), port(), port()
	change := strings.NewReplacer("redis=$!\n", "redis=$!\nstarted redis-cli -p "+redis+" ping\n",
		"shop=$!\n", "shop=$!\nstarted curl -sf 127.0.0.1:"+shop+"\n",
		"gate=$!\n", "gate=$!\nstarted curl -sf 127.0.0.1:"+ops+"/readyz\n",
		"sluice drain\nsed", "sluice drain\nwait $gate\nsed",
		"sluice stock get 1001\n", "started eval 'sluice stock get 1001 | grep \"10 sold\"'\nsluice stock get 1001\n",
		"16379", redis, "127.0.0.1:9000", "127.0.0.1:"+shop, "127.0.0.1:8080",
		"127.0.0.1:"+listen,
		"127.0.0.1:8091", "127.0.0.1:"+ops, "make build\n", "", "go build -o naive ./examples/naive\n", "",
		`mode = "observe"`, fmt.Sprintf("server.listen = [\":%s\"]\nserver.shutdown_delay = \"0s\"\nops.listen = "+
			"\"127.0.0.1:%s\"\n"+
			"admin.listen = \"127.0.0.1:%s\"\nmode = \"observe\"", listen, ops, admin))
	script := "set -e\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n" +
		"started() { for i in {1..600}; do \"$@\" >/dev/null 2>&1 && return; sleep 0.05; done; echo \"never: $*\"; false; }\n"
	for _, b := range blocks {
		script += "echo '-- block'\n" + change.Replace(b) + "sleep 1\n" // stands for the time that a reader takes
	}
	return script + "trap - EXIT\n"
}
