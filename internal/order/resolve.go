package order

import "time"

// The bounds of what edges promise and backends keep: how long it may take until an
// order that was answered "queued" can be read as what it has become. Below the
// least, one slow call of Redis would break the promise.
const (
	MinResolveWithin = 5 * time.Second
	MaxResolveWithin = time.Hour
)
