package lua

import (
	"cmp"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Bounds of a client's calls, unless its URL says otherwise.
const (
	dialTimeout = time.Second
	callTimeout = 500 * time.Millisecond
	poolTimeout = 200 * time.Millisecond
	// bufferSize, each way and connection: a script call of 64 requests fits.
	bufferSize = 8 << 10
)

// errURL does not repeat the URL or any part of it, nor the parser's words: a
// mistyped URL has its password in unexpected places.
var errURL = errors.New("the Redis URL cannot be read; it must look like redis://user:password@host:6379/0 " +
	"(rediss:// with TLS; redis+cluster://host:6379?addr=host2:6379 for a cluster); " +
	"characters like / ? # @ : % in a password must be percent-encoded, and a port be at most 65535")

// dialable says whether all addresses have a port that there can be.
func dialable(addresses ...string) bool {
	for _, a := range addresses {
		_, port, err := net.SplitHostPort(a)
		if err != nil {
			return false
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	return true
}

// NewClient makes a client that edge and backend both use; name is what CLIENT
// LIST shows. It dials nothing, and never repeats a command by itself. The URL
// is redis://, rediss://, or redis+cluster:// and rediss+cluster:// with further
// nodes as addr parameters; go-redis's parameters dial_timeout, read_timeout,
// write_timeout, pool_timeout and pool_size may follow. Close it after use.
func NewClient(url, name string) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	if base, ok := strings.CutSuffix(scheme, "+cluster"); ok {
		return newCluster(base+"://"+rest, name)
	}
	if scheme != "redis" && scheme != "rediss" {
		return nil, errURL
	}
	o, err := redis.ParseURL(url)
	if err != nil || !dialable(o.Addr) {
		return nil, errURL
	}
	o.ClientName = name
	o.Protocol = 2
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = cmp.Or(o.DialTimeout, dialTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, callTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, callTimeout)
	o.PoolTimeout = cmp.Or(o.PoolTimeout, poolTimeout)
	o.ContextTimeoutEnabled = true
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// newCluster sets the same as NewClient. The cluster client follows redirects,
// and in doing so may repeat a call: every script is safe to repeat.
func newCluster(url, name string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(url)
	if err != nil || !dialable(o.Addrs...) {
		return nil, errURL
	}
	o.ClientName = name
	o.Protocol = 2
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = cmp.Or(o.DialTimeout, dialTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, callTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, callTimeout)
	o.PoolTimeout = cmp.Or(o.PoolTimeout, poolTimeout)
	o.ContextTimeoutEnabled = true
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}
