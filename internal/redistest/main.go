package redistest

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// quietly drops what go-redis says about servers that the tests have killed.
type quietly struct{}

func (quietly) Printf(context.Context, string, ...any) {}

// Main is the TestMain of packages that talk to Redis: no goroutine may be left behind.
func Main(m goleak.TestingM) {
	redis.SetLogger(quietly{})
	goleak.VerifyTestMain(m,
		goleak.Cleanup(os.Exit),
		// A pool whose server was killed dials once more within a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
