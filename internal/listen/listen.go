// Package listen opens ports, and says what to do where it cannot.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// TCP listens on address. An error names the option that the address was given by,
// the address, and the way out.
func TCP(ctx context.Context, option, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	var why string
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = "is taken by another program; stop it, or name another port (0 takes a free one)"
	case errors.Is(err, syscall.EACCES):
		why = "is not allowed to this user, as ports below 1024 are not; name a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT), isDNS:
		why = "is no address of this machine; name one that is, such as 127.0.0.1"
	default:
		return nil, fmt.Errorf("%s %s cannot be listened on: %w", option, address, err)
	}
	return nil, fmt.Errorf("%s %s %s", option, address, why)
}
