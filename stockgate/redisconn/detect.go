package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// unreachedError is why the first thing that Redis is asked has no answer.
type unreachedError struct {
	asked string
	cause error
}

func (e *unreachedError) Error() string { return e.asked + ": " + e.cause.Error() }
func (e *unreachedError) Unwrap() error { return e.cause }

// WithRemedy is err, with what to do where Redis did not answer the first question.
func WithRemedy(err error) error {
	var unreached *unreachedError
	if errors.As(err, &unreached) {
		return fmt.Errorf("%w; %s", err, Remedy(unreached.cause))
	}
	return err
}

// detect asks one address after the other, until one says what it is. For sentinels it returns the name of the master.
func (o Options) detect(ctx context.Context) (topology, master string, err error) {
	for _, address := range o.Addresses {
		topology, master, err = o.askTopology(ctx, address)
		switch {
		case err != nil:
			err = &unreachedError{"ask " + address, err}
		case topology == Single && len(o.Addresses) > 1:
			return "", "", tooMany(len(o.Addresses))
		case topology != Single && onSocket(address):
			return "", "", errSocket
		case topology == Cluster && o.DB != 0:
			return "", "", errDB
		default:
			return topology, master, nil
		}
	}
	return "", "", err
}

// askTopology asks one server what it is, by HELLO, which no right is needed for. Sentinels mostly do not know the user
// that the servers know: they are asked without one then.
func (o Options) askTopology(ctx context.Context, address string) (topology, master string, err error) {
	to := goRedisOptions(o, address)
	to.PoolSize, to.DB = 1, 0
	client := redis.NewClient(&to)
	defer client.Close()
	said, err := client.Do(ctx, "hello").Result()
	if redis.HasErrorPrefix(err, "WRONGPASS") && o.Username != "" {
		o.Username, o.Password = "", nil
		if topology, master, other := o.askTopology(ctx, address); other == nil && topology == Sentinel {
			return topology, master, nil
		}
		return "", "", err
	}
	var reply redis.Error
	is, _ := said.(map[any]any)
	switch {
	case err != nil && (!errors.As(err, &reply) || anyPrefix(err, "NOAUTH", "WRONGPASS", "LOADING")):
		return "", "", err
	case is["mode"] == Cluster:
		return Cluster, "", nil
	case is["mode"] != Sentinel:
		return Single, "", nil // also what does not tell, such as a proxy
	}
	role, err := client.Do(ctx, "role").Slice()
	if err != nil || len(role) < 2 {
		return "", "", errors.Join(err, errors.New("the sentinel does not name its masters"))
	}
	names, _ := role[1].([]any)
	if len(names) != 1 {
		return "", "", fmt.Errorf("the sentinel watches %d masters: %s; write which one as master_name",
			len(names), strings.Trim(fmt.Sprint(names), "[]"))
	}
	return Sentinel, fmt.Sprint(names[0]), nil
}
