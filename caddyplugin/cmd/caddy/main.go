// Command caddy is Caddy with its standard modules and the seckill plugin linked
// in, every module at the version that this repository's go.sum names. Build it
// with the tags nobadger,nomysql,nopgx, or Caddy's own ACME server brings
// database drivers along.
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seckill-edge/seckill/caddyplugin"
)

func main() { caddycmd.Main() }
