package param

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"sluice/internal/testkit"

	"sluice/proxy/param/paramtest"
)

// programs read targets as the readers do.
var programs = map[paramtest.Reader][]string{
	paramtest.PHPParseURL: {"php", "target.php"},
	paramtest.NodeURL:     {"node", "target.mjs"},
	paramtest.NodeParse:   {"node", "--no-deprecation", "target.mjs", "parse"},
	paramtest.JavaURI:     {"java", "Target.java"},
	paramtest.PythonSplit: {"python3", "target.py"},
}

// missing skips a test whose program is not there.
func missing(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(program + " is not installed")
	}
}

func TestTable_ProgramsReadTargetsSo(t *testing.T) {
	testkit.Nightly(t, "it starts php, node, java and python")
	for reader, command := range programs {
		t.Run(command[0]+" "+command[len(command)-1], func(t *testing.T) {
			missing(t, command[0])
			var rows []paramtest.Row
			input := ""
			for _, row := range paramtest.Readings {
				if row.Kind != paramtest.Target {
					continue
				}
				for _, r := range row.Readers {
					if r == reader {
						rows, input = append(rows, row), input+row.Input+"\n"
					}
				}
			}
			program := exec.Command(command[0], command[1:]...)
			program.Dir, program.Stdin = "testdata", strings.NewReader(input)
			out, err := program.Output()
			if err != nil {
				t.Fatal(err)
			}
			paths := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(paths) != len(rows) || len(rows) == 0 {
				t.Fatalf("%d paths of %d targets", len(paths), len(rows))
			}
			for i, row := range rows {
				if paths[i] != row.Reads {
					t.Errorf("%s: %s, the table has %s", row.Input, paths[i], row.Reads)
				}
			}
		})
	}
}

func TestTable_GoReadsTargetsSo(t *testing.T) {
	for _, row := range paramtest.Readings {
		for _, r := range row.Readers {
			if r != paramtest.GoURL || row.Kind != paramtest.Target {
				continue
			}
			if u, err := url.ParseRequestURI(row.Input); err != nil || u.Path != row.Reads {
				t.Errorf("%s: %v %v, the table has %s", row.Input, u, err, row.Reads)
			}
		}
	}
}

func TestTable_PHPReadsNamesSo(t *testing.T) {
	testkit.Nightly(t, "it starts php")
	missing(t, "php")
	address := testkit.FreeAddress(t)
	shop := exec.Command("php", "-S", address, "testdata/shop.php")
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shop.Process.Kill()
		_ = shop.Wait() // it was killed
	})
	testkit.Eventually(t, "php listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	ask := func(query, form, cookies string) string {
		request, err := http.NewRequest("POST", "http://"+address+"/?"+query, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Cookie", cookies)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	asked := 0
	for _, row := range paramtest.Readings {
		want := row.Reads
		if want != "" && strings.Contains("[{", want[:1]) {
			want = "list"
		}
		var got []string
		for _, r := range row.Readers {
			if r != paramtest.PHPRequest {
				continue
			}
			switch row.Kind {
			case paramtest.Name:
				got = append(got, ask("", row.Input, ""))
				if !strings.Contains(row.Input, "%00") {
					got = append(got, ask(row.Input, "", ""))
				}
			case paramtest.CookieName:
				got = append(got, ask("", "", row.Input))
			case paramtest.Place:
				query, form, _ := strings.Cut(row.Input, "\n")
				got = append(got, ask(query, form, ""))
			}
		}
		for _, value := range got {
			if asked++; value != want {
				t.Errorf("%q: %s, the table has %s", row.Input, value, row.Reads)
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d questions", asked)
	}
}
