package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens a port, or says which flag to change.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %s is taken by another program; stop it, or name another port (0 takes a free one)", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s cannot be listened on: %w", flag, address, err)
	}
	return l, nil
}

// reserve finds out that a port is free, or which one is for port 0, and leaves
// it free: Caddy opens its listeners by itself, and shares a taken port without
// a word where the other one allows it.
func reserve(flag, address string) (string, error) {
	l, err := listen(flag, address)
	if err != nil {
		return "", err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("freeing %s %s again: %w", flag, address, err)
	}
	return address, nil
}
