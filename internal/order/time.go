package order

import "time"

// Times are those of the years 1970 to 9999, UTC, in whole milliseconds: what JSON,
// RFC 3339 and a signed number of milliseconds all can say.
var (
	FirstTime = time.UnixMilli(0).UTC()
	LastTime  = time.UnixMilli(lastMilli).UTC()
)

// lastMilli is 9999-12-31T23:59:59.999Z.
const lastMilli = 253_402_300_799_999

// ValidTime says whether t is between FirstTime and LastTime.
func ValidTime(t time.Time) bool {
	ms := t.UnixMilli()
	return 0 <= ms && ms <= lastMilli
}
