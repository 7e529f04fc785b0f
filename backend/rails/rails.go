// Package rails says whether a Redis is fit to hold a stock: it must not evict
// keys, must survive a restart, and must have room for the orders to come.
//
// A Redis that is not fit works well until the day it matters. So preheat and
// open refuse it, unless the operator accepts the risk, and a running backend
// warns.
package rails

import (
	"fmt"
	"strings"
)

// Kind names a problem; it is the label of a metric, so the list is fixed.
type Kind string

// The kinds of problems.
const (
	// Eviction: Redis may throw away buyers and counters when memory is short.
	Eviction Kind = "eviction"
	// Persistence: a restart forgets everything.
	Persistence Kind = "persistence"
	// Memory: the orders to come do not fit.
	Memory Kind = "memory"
	// Unknown: the server does not tell one of these. It is no reason to refuse.
	Unknown Kind = "unknown"
)

// Kinds are all kinds.
var Kinds = []Kind{Eviction, Persistence, Memory, Unknown}

// Problem is one thing that makes a Redis unfit, or that it does not tell.
type Problem struct {
	Kind Kind
	// Words name the setting, its value and what it does; Way says what to set.
	Words, Way string
}

func (p Problem) String() string {
	if p.Way == "" {
		return p.Words
	}
	return p.Words + "; " + p.Way
}

// Refusable returns the problems that a sale should not start with.
func Refusable(problems []Problem) []Problem {
	var out []Problem
	for _, p := range problems {
		if p.Kind != Unknown {
			out = append(out, p)
		}
	}
	return out
}

// Join puts problems into one line.
func Join(problems []Problem) string {
	words := make([]string, len(problems))
	for i, p := range problems {
		words[i] = p.String()
	}
	return strings.Join(words, " | ")
}

const (
	// orderBytes is what an order takes in Redis, measured: its entry in the hash
	// of users and, for a while, in the outbox.
	orderBytes = 230
	// margin is for scripts, connections and what a growing hash needs at once.
	margin = 16 << 20
	// mostOrders caps the estimate. A sale of more units sells several an order, or
	// is filled over days, in which its operator sees the memory grow.
	mostOrders = 20_000_000
)

// Need is the memory, in bytes, that units still to be sold take at most, when
// each is an order of its own; a margin included.
func Need(units int64) int64 {
	return max(0, min(units, mostOrders))*orderBytes + margin
}

// judge says what is wrong with a server that has to take need bytes more.
func judge(f facts, need int64) []Problem {
	var out []Problem
	add := func(k Kind, way, words string, args ...any) {
		out = append(out, Problem{Kind: k, Words: "Redis " + f.addr + ": " + fmt.Sprintf(words, args...), Way: way})
	}
	switch f.policy {
	case "noeviction":
	case "":
		add(Unknown, "make sure that it is noeviction", "it does not tell its maxmemory-policy")
	default:
		add(Eviction, "CONFIG SET maxmemory-policy noeviction", "maxmemory-policy is %s: when memory is short it throws buyers and stock away", f.policy)
	}
	switch {
	case f.aof == yes || f.saves == yes:
	case f.aof == no && f.saves == no:
		add(Persistence, "CONFIG SET appendonly yes", `appendonly is no and save is "": a restart forgets every reservation`)
	case f.aof == no:
		add(Unknown, "make sure that it persists, best with appendonly yes", "appendonly is no, and it does not tell whether it saves snapshots")
	default:
		add(Unknown, "make sure that it persists, best with appendonly yes", "it does not tell whether it persists")
	}
	switch {
	case !f.memoryKnown:
		add(Unknown, "make sure that it has room", "it does not tell its memory")
	case f.maxMemory > 0 && f.used+need > f.maxMemory:
		add(Memory, fmt.Sprintf("CONFIG SET maxmemory %s, or sell fewer units", megabytesUp(f.used+need+need/4)),
			"maxmemory is %s, of which %s are used, and the orders to come need up to %s: when it is full nothing more is sold",
			megabytes(f.maxMemory), megabytes(f.used), megabytes(need))
	}
	return out
}

func megabytes(n int64) string { return fmt.Sprintf("%dmb", n>>20) }

// megabytesUp rounds up.
func megabytesUp(n int64) string { return fmt.Sprintf("%dmb", (n+1<<20-1)>>20) }
