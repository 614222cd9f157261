package redisconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrBreakerOpen is the cause when nothing was sent since the breaker is open.
	ErrBreakerOpen = errors.New("redis: nothing was sent after too many errors")

	// ErrReplyMismatch is the cause when a reply belonged to another command. A caller that finds that returns it from the
	// function that it gave to Ask, and every connection is closed: later replies on them cannot be believed either.
	ErrReplyMismatch = errors.New("the reply is another question's")
)

// Why nothing was sent.
var (
	ErrUnsent        = errors.New("nothing was sent")
	errAnotherServer = errors.New("redis is another server than before")
	errNoMaster      = errors.New("redis is no master")
)

// Unsent reports whether an error of Do or Ask tells that Redis has done nothing: the breaker was open, there was no
// connection, or Redis has said before it ran anything that it will not. false = unknown. What a script of several
// writes ran into on its way (the message names the script then) never tells that.
func Unsent(err error) bool {
	causes := []error{ErrBreakerOpen, redis.ErrPoolTimeout, ErrUnsent, errAnotherServer, errNoMaster}
	var op *net.OpError
	switch {
	case err == nil:
		return false
	case slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) }):
		return true
	case errors.As(err, &op) && op.Op == "dial":
		return true
	case strings.Contains(err.Error(), "script: "):
		return false
	}
	return Redirected(err) || anyPrefix(err, "LOADING", "MASTERDOWN", "BUSY ", "NOAUTH", "WRONGPASS", "CLUSTERDOWN")
}

// Unanswered is err, unless Redis itself has answered so: then it can be reached.
func Unanswered(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		return nil
	}
	return err
}

// Redirected reports whether a server said that it has not run a command, since the key is on another one, or is about
// to be (MOVED, ASK, TRYAGAIN).
func Redirected(err error) bool { return anyPrefix(err, "MOVED ", "ASK ", "TRYAGAIN") }

// anyPrefix reports whether Redis replied with an error that begins with one of these.
func anyPrefix(err error, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return redis.HasErrorPrefix(err, p) })
}

// complete is address, with the host of from where it has none of its own. Redirections write IPv6 addresses without
// brackets: the port is what stands behind the last colon.
func complete(address, from string) string {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return address
	}
	host := strings.Trim(address[:colon], "[]")
	if host == "" || host == "?" {
		said, _, err := net.SplitHostPort(from)
		if err != nil {
			return address
		}
		host = said
	}
	return net.JoinHostPort(host, address[colon+1:])
}

// hooks complete what go-redis does on the connections of one client.
type hooks struct{ client *redis.Client }

// askFirst marks a context whose commands speak of a slot that the server is about to get.
type askFirst struct{}

func (hooks) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook makes a pipeline of a single command that needs an ASKING before it.
func (h hooks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(askFirst{}) == nil || withoutKeys(cmd) {
			return next(ctx, cmd)
		}
		pipe := h.client.Pipeline()
		_ = pipe.Process(ctx, cmd)
		_, _ = pipe.Exec(ctx)
		return cmd.Err()
	}
}

// ProcessPipelineHook puts an ASKING before each command that needs one, in the same packet: it holds for the next
// command of its connection alone. It also gives every command the pipeline's error when none was sent: where Redis
// rejects a new connection (WRONGPASS, BUSY), go-redis tells the pipeline alone, and each command would pass for
// answered, with 0, with nothing or with OK.
func (h hooks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		all := cmds
		if ctx.Value(askFirst{}) != nil {
			all = make([]redis.Cmder, 0, 2*len(cmds))
			for _, cmd := range cmds {
				if !withoutKeys(cmd) {
					all = append(all, redis.NewCmd(ctx, "asking"))
				}
				all = append(all, cmd)
			}
		}
		err := next(ctx, all)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				return cmd.Err()
			}
		}
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// withoutKeys reports whether a command is one with which a connection begins, or that names no key.
func withoutKeys(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "hello", "auth", "client", "select", "info", "role", "script", "ping", "wait":
		return true
	}
	return false
}

// isLate reports whether err is that an answer, or a connection, took too long.
func isLate(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "i/o timeout") || strings.Contains(err.Error(), "deadline exceeded")
}

// isClosed reports whether Redis has closed a connection. go-redis drops the line in which it says why.
func isClosed(text string) bool {
	return strings.Contains(text, "broken pipe") || strings.Contains(text, "reset by peer") ||
		strings.Contains(text, "max number of clients") || strings.Contains(text, "DENIED ") ||
		strings.HasSuffix(text, "EOF")
}

// Remedy is what an operator does where Redis cannot be asked because of err.
func Remedy(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"),
		strings.Contains(text, "without any password configured"), strings.Contains(text, "unauthenticated"):
		return "correct stock.redis.username, and the password in the file of stock.redis.password_file"
	case strings.Contains(text, "READONLY"):
		return "write the address of the master into stock.redis.addresses"
	case strings.Contains(text, "OOM command"):
		return "raise maxmemory in redis.conf, and for now: redis-cli CONFIG SET maxmemory"
	case strings.Contains(text, "MISCONF"):
		return "give Redis a disk that it can write to: its log names the cause"
	case strings.Contains(text, "LOADING"):
		return "wait until Redis has loaded what it keeps on disk"
	case strings.Contains(text, "CLUSTERDOWN"):
		return "start the masters that redis-cli CLUSTER NODES calls fail, and set cluster-require-full-coverage no, so " +
			"that the others serve their SKUs"
	case strings.Contains(text, "NOPERM"), strings.Contains(text, "can't run this command"):
		return "permit this user's commands and keys: docs/redis.md lists them"
	case strings.Contains(text, "dial unix") && strings.Contains(text, "permission denied"):
		return "let the user that runs sluice use the socket: unixsocketperm in redis.conf, and the group of its folder"
	case strings.Contains(text, "dial unix"):
		return "start Redis, write its unixsocket into redis.conf, or correct stock.redis.addresses"
	case strings.Contains(text, "no such host"):
		return "correct the host in stock.redis.addresses, or the name server"
	case isClosed(text):
		return "Redis has closed the connection: start it if it has ended; else redis-cli -h HOST -p PORT PING tells why, " +
			"as by maxclients, protected mode or TLS"
	case isLate(err):
		return "Redis is slower than stock.redis.timeout: look at its load and the network, or raise it"
	}
	return "start Redis, or correct stock.redis.addresses"
}
