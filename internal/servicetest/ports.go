package servicetest

import (
	"fmt"
	"net"
)

// freePort finds a loopback port that nobody listens on. Another process may
// take it before it is used; callers start their server at once.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free loopback port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("giving back the free port %d: %w", port, err)
	}
	return port, nil
}
