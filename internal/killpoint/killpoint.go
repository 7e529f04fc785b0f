// Package killpoint lets a fault test kill a process of ours at a named line of
// code: between a commit and its acknowledgement, between a confirm and what
// follows it. A crash at such a place cannot be hit by killing from outside.
//
// Without the build tag killpoints, Here is an empty function that the compiler
// removes. With it, the environment variable SECKILL_KILL_AT=name or name:nth
// makes the process send itself SIGKILL when it comes to Here(name), the nth
// time it does. Names are the constants below.
package killpoint

// The places.
const (
	// AfterReserve: Redis has granted a batch, no buyer has his answer and nothing
	// was published. At the edge.
	AfterReserve = "after-reserve"
	// AfterPublish: the broker has confirmed a message, its orders are still in the
	// outbox. At the edge.
	AfterPublish = "after-publish"
	// BeforeCommit: a batch is written, its transaction not committed.
	BeforeCommit = "before-commit"
	// AfterCommit: a batch is stored, its messages are not acknowledged.
	AfterCommit = "after-commit"
	// AfterAck: stored and acknowledged, Redis knows nothing of it.
	AfterAck = "after-ack"
	// AfterSettle: Redis knows, the settler does not know that it does.
	AfterSettle = "after-settle"
	// AfterBury: a dead letter is confirmed, its message not acknowledged and its
	// unit not released.
	AfterBury = "after-bury"
	// AfterMove: an order was paid, cancelled or has expired in SQL; Redis knows
	// nothing of it.
	AfterMove = "after-move"
	// AfterRelay: the relay's message is confirmed, its orders are in the outbox.
	AfterRelay = "after-relay"
	// AfterDirect: orders that the broker did not deliver are stored from Redis's
	// records; Redis knows nothing of it.
	AfterDirect = "after-direct"
	// AfterHold: an activity is held, its stock is to be proven.
	AfterHold = "after-hold"
	// AfterRewrite: buyers' records are what SQL says, the counters are not.
	AfterRewrite = "after-rewrite"
	// AfterProve: the gate is open, nobody has looked whether it should still be.
	AfterProve = "after-prove"
	// AfterPreheat: an activity is in Redis, held, and SQL does not know.
	AfterPreheat = "after-preheat"
	// AfterOpen: SQL says that an activity is open, Redis has it held.
	AfterOpen = "after-open"
	// AfterChange: SQL knows that a total is to change, Redis does not.
	AfterChange = "after-change"
	// AfterResize: Redis has the new total, SQL does not know that it has.
	AfterResize = "after-resize"
	// AfterArchive: SQL says that all is settled, Redis keeps the keys for ever.
	AfterArchive = "after-archive"
)

// Variable is the environment variable that chooses a place.
const Variable = "SECKILL_KILL_AT"
