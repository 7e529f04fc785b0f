package main

import (
	"context"
	"fmt"

	"github.com/seckill-edge/seckill/internal/listen"
)

// reserve finds out that a port is free, or which one is for port 0, and leaves
// it free: Caddy opens its listeners by itself, and shares a taken port without
// a word where the other one allows it.
func reserve(ctx context.Context, flag, address string) (string, error) {
	l, err := listen.TCP(ctx, flag, address)
	if err != nil {
		return "", err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("freeing %s %s again: %w", flag, address, err)
	}
	return address, nil
}
