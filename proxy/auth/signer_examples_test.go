package auth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// The keys of examples/verify/vectors.tsv, which docs/shop.md names too.
const (
	exampleKey    = "sluice-example-secret-0123456789"
	exampleOldKey = "sluice-example-secret-before-that"
)

// vector is one line that the example programs verify: signature, method, target, serial, SKU, quantity, deadline.
type vector struct {
	good   bool
	name   string
	fields []string
}

// sign is the vector of an order as Sluice sends it.
func sign(t *testing.T, key, name string, o SignedOrder) vector {
	t.Helper()
	value := newTestSigner(t, key).Append(nil, o)
	return vector{true, name, []string{string(value), string(o.Method), string(o.Target), o.Serial, string(o.SKU),
		strconv.FormatInt(o.Quantity, 10), strconv.FormatInt(o.Deadline, 10)}}
}

// but is v with one field changed, which makes it bad.
func (v vector) but(name string, field int, change func(string) string) vector {
	fields := append([]string(nil), v.fields...)
	fields[field] = change(fields[field])
	return vector{false, name, fields}
}

func (v vector) line() string {
	verdict := "bad: "
	if v.good {
		verdict = "ok: "
	}
	return strings.Join(append(v.fields[:len(v.fields):len(v.fields)], verdict+v.name), "\t") + "\n"
}

// vectors are the lines of examples/verify/vectors.tsv.
func vectors(t *testing.T) []vector {
	o, odd := testOrder(), testOrder()
	odd.Method, odd.Target = []byte("PUT"), []byte("/%E8%AE%A2%E5%8D%95;v=1/%2e?")
	odd.Serial, odd.SKU = strings.Repeat("~!", 64), []byte("手机-à") // ends in 0xa0, a space in Latin-1
	odd.Quantity, odd.Deadline = 1_000_000_000, 999_999_999_999_999
	order := sign(t, exampleKey, "an order", o)
	to := func(s string) func(string) string { return func(string) string { return s } }
	return []vector{
		order,
		sign(t, exampleKey, "the longest fields, other characters, an empty query", odd),
		sign(t, exampleOldKey, "signed with the old key", o),
		order.but("another SKU", 4, to("1002")),
		order.but("another quantity", 5, to("2")),
		order.but("the same quantity in other words", 5, to("01")),
		order.but("a later deadline", 6, to("1794265200001")),
		order.but("another serial", 3, to("another")),
		order.but("another method", 1, to("PUT")),
		order.but("a method in lower case", 1, strings.ToLower),
		order.but("another path", 2, to("/api/seckill/1002/order?from=app")),
		order.but("another query", 2, to("/api/seckill/1001/order?from=web")),
		order.but("a query that is gone", 2, to("/api/seckill/1001/order")),
		order.but("an escape that another means the same by", 2, to("/api/seckill/%31001/order?from=app")),
		order.but("a truncated signature", 0, func(s string) string { return s[:len(s)-1] }),
		order.but("a signature that goes on", 0, func(s string) string { return s + "0" }),
		order.but("one digit is another", 0, func(s string) string { return s[:5] + strconv.Itoa(int(s[5]+1)%10) + s[6:] }),
		order.but("digits in upper case", 0, func(s string) string { return "v1=" + strings.ToUpper(s[3:]) }),
		order.but("a version in upper case", 0, func(s string) string { return "V1=" + s[3:] }),
		order.but("another version", 0, func(s string) string { return "v2=" + s[3:] }),
		order.but("digits alone", 0, func(s string) string { return s[3:] }),
		order.but("two signatures", 0, func(s string) string { return s + "," + s }),
		order.but("no signature", 0, to("")),
		order.but("a signature of something else", 0, to("v1="+strings.Repeat("0", 64))),
		{false, "signed with another key", sign(t, signingKey, "", o).fields},
		order.but("signed with an empty key", 0, to(signature("", o))),
	}
}

func TestSigner_ExampleVectorsAreCurrent(t *testing.T) {
	var want strings.Builder
	for _, v := range vectors(t) {
		want.WriteString(v.line())
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "examples", "verify", "vectors.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("vectors.tsv must be\n%s", &want)
	}
}

// randomVectors makes random orders, and for each the same with one byte of one field changed.
func randomVectors(t *testing.T, orders int) (all []vector) {
	random := rand.New(rand.NewPCG(1, 2))
	visible := func(most int) []byte {
		b := make([]byte, 1+random.IntN(most))
		for i := range b {
			b[i] = byte('!' + random.IntN('~'-'!'+1))
		}
		return b
	}
	for i := range orders {
		o := SignedOrder{
			[]byte("POST"), append([]byte("/"), visible(200)...), string(visible(128)), visible(128),
			1 + random.Int64N(9), random.Int64N(1 << 41),
		}
		for c := range o.SKU {
			if !validSKU(o.SKU[c : c+1]) {
				o.SKU[c] = 0xe4 // no ASCII, and no UTF-8
			}
		}
		v := sign(t, exampleKey, fmt.Sprintf("random order %d", i), o)
		change := func(s string) string {
			at := random.IntN(len(s))
			return s[:at] + string([]byte{s[at] ^ 1}) + s[at+1:]
		}
		all = append(all, v, v.but(fmt.Sprintf("order %d random order, changed", i), random.IntN(7), change))
	}
	return all
}

// verifiers are the programs of examples/verify, each with the commands without which it is skipped.
var verifiers = []struct {
	name    string
	needs   []string
	command []string
}{
	{"Go", []string{"go"}, []string{"go", "run", "-buildvcs=false", "."}},
	{"Java", []string{"java", "javac"}, []string{"java", "-XX:TieredStopAtLevel=1", "--source", "11", "Verify.java"}},
	{"PHP", []string{"php"}, []string{"php", "verify.php"}},
	{"Node", []string{"node"}, []string{"node", "verify.mjs"}},
}

func TestSigner_ExampleProgramsVerifyOrders(t *testing.T) {
	testkit.Nightly(t, "it starts compilers of four languages")
	long := strings.Repeat("more than a block ", 9)
	emptyKey := func(string) string { return signature("", testOrder()) }
	rounds := []struct {
		key, old string
		vectors  []vector
	}{
		{exampleKey, exampleOldKey, append(vectors(t), randomVectors(t, 100)...)},
		{long, "", []vector{
			sign(t, long, "a long key", testOrder()),
			{false, "a key that was replaced", sign(t, exampleKey, "", testOrder()).fields},
			vectors(t)[0].but("an empty key, while there is no old one", 0, emptyKey),
			{false, "too few fields", []string{"v1=", "POST", "/"}},
			{false, "nothing", nil},
		}},
		{"", "", []vector{
			sign(t, exampleKey, "", testOrder()).but("no key at all", 0, func(s string) string { return s }),
			vectors(t)[0].but("an empty key, while there is none", 0, emptyKey),
		}},
	}
	for _, j := range verifiers {
		t.Run(j.name, func(t *testing.T) {
			for _, command := range j.needs {
				if _, err := exec.LookPath(command); err != nil {
					t.Skipf("%s is not installed", command)
				}
			}
			for _, r := range rounds {
				runVerifier(t, j.command, []string{"SLUICE_SECRET=" + r.key, "SLUICE_SECRET_OLD=" + r.old}, r.vectors)
			}
		})
	}
}

// runVerifier lets one program verify the vectors and compares its verdicts.
func runVerifier(t *testing.T, command, env []string, vectors []vector) {
	t.Helper()
	var in strings.Builder
	for _, v := range vectors {
		in.WriteString(v.line())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it hangs
	defer cancel()
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Dir = filepath.Join("..", "..", "examples", "verify")
	program.Env = append(os.Environ(), env...)
	program.Stdin = strings.NewReader(in.String())
	var complaint strings.Builder
	program.Stderr = &complaint
	out, err := program.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &complaint)
	}
	verdicts := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(verdicts) != len(vectors) {
		t.Fatalf("%d verdicts on %d orders: %s", len(verdicts), len(vectors), &complaint)
	}
	for i, v := range vectors {
		if want := map[bool]string{true: "ok", false: "bad"}[v.good]; verdicts[i] != want {
			t.Errorf("%s: %q, want %s", v.name, verdicts[i], want)
		}
	}
}
