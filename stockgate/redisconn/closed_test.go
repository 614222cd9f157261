package redisconn

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A Redis that runs and takes no more clients is not said to be away.
func TestRemedy_NamesWhatHasRedisCloseConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := server.Client.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	err := ping(t, openMany(t, server, 100*time.Millisecond, 1))
	if err == nil || !strings.Contains(Remedy(err), "maxclients") {
		t.Errorf("%v: %s", err, Remedy(err))
	}
}
