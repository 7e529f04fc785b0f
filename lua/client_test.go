package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestNewClient(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		c, err := NewClient("rediss://bob:s3cret@example.com:7000/3?read_timeout=2s&max_retries=7", "edge-1")
		require.NoError(t, err)
		defer c.Close()
		o := c.(*redis.Client).Options()
		require.Equal(t, "example.com:7000", o.Addr)
		require.Equal(t, "s3cret", o.Password)
		require.Equal(t, 3, o.DB)
		require.Equal(t, "edge-1", o.ClientName)
		require.NotNil(t, o.TLSConfig)
		require.Zero(t, o.MaxRetries, "go-redis writes 0 for never")
		require.Equal(t, 1, o.DialerRetries)
		require.Equal(t, 2, o.Protocol)
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 500 * time.Millisecond, 200 * time.Millisecond},
			[]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout})
		require.True(t, o.ContextTimeoutEnabled)
	})

	t.Run("cluster", func(t *testing.T) {
		c, err := NewClient("redis+cluster://:s3cret@a:7000?addr=b:7001", "edge-1")
		require.NoError(t, err)
		defer c.Close()
		o := c.(*redis.ClusterClient).Options()
		require.Equal(t, []string{"a:7000", "b:7001"}, o.Addrs)
		require.Equal(t, "s3cret", o.Password)
		require.Equal(t, "edge-1", o.ClientName)
		require.Equal(t, 500*time.Millisecond, o.ReadTimeout)
	})

	t.Run("never repeats a password", func(t *testing.T) {
		for _, url := range []string{
			"", "s3cret", "s3cret://host", "http://:s3cret@host", "redis://:s3cret@host:port", "redis://:a/s3cret@host:1",
			"redis://:1/s3cret@host", "redis://host/s3cret", "redis://host?s3cret=1", "redis://host?db=s3cret", "redis://a:%zzs3cret@host",
			"redis+cluster://:s3cret@host:port", "redis://:s3cret@host:65536", "redis://:s3cret@host:0", "redis+cluster://:s3cret@host:99999", "s3cret+cluster://host", "redis://host?read_timeout=s3cret", "redis+cluster://host?s3cret=1",
		} {
			_, err := NewClient(url, "edge")
			require.Error(t, err, url)
			require.NotContains(t, err.Error(), "s3cret")
			require.ErrorContains(t, err, "must look like redis://")
		}
	})
}
