// Package seckill holds the production Caddyfile, so that the demonstration and
// the tests run the very file that is deployed.
package seckill

import _ "embed"

// Caddyfile is the production example. What differs between installations comes
// from the environment, as its comments say.
//
//go:embed Caddyfile
var Caddyfile []byte
