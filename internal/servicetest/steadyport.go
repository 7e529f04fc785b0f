package servicetest

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports from firstSteady on and below the range from which Linux takes the local
// ends of outgoing connections (32768 by default). A port of that range can be
// taken by any client at all while a server is down or slow to start.
const (
	firstSteady  = 12_000
	steadyPorts  = 20_000
	steadyTrials = 50
)

// steadyPort finds a free loopback port that is likely to stay free until the
// server listens, and between its stop and its restart.
func steadyPort() (int, error) {
	var last error
	for range steadyTrials {
		port := firstSteady + rand.IntN(steadyPorts)
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("looking for a free loopback port from %d on, %d trials: %w",
		firstSteady, steadyTrials, last)
}
