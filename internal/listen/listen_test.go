package listen

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTCP(t *testing.T) {
	l, err := TCP(t.Context(), "--listen", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).String()
	for address, says := range map[string]string{
		taken:                     "is taken by another program; stop it, or name another port",
		"203.0.113.1:0":           "is no address of this machine",
		"no-such-host.invalid:80": "is no address of this machine",
		"127.0.0.1":               "cannot be listened on",
	} {
		_, err := TCP(t.Context(), "--listen", address)
		require.ErrorContains(t, err, "--listen "+address+" "+says)
	}
}
