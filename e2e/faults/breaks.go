package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// What README's table of faults gives a sale to come back: a stock that must be
// proven, and one whose proof waits for the last words of a dead edge. Whatever
// was away has the first of them, until everybody has noticed. A slow machine has
// longer.
const (
	recovery     = 2 * time.Second
	recoveryDead = 10 * time.Second
)

func edgeName(n int) string    { return fmt.Sprint("edge ", n+1) }
func backendName(n int) string { return fmt.Sprint("backend ", n+1) }

// breaks is an outage of a server for some programs, for all if none is named.
func breaks(s history.Server, c history.Cause, programs ...string) history.Outage {
	return history.Outage{Server: s, Cause: c, Programs: programs, Recovery: scaled(recovery)}
}

// atOnce gives a proof the time it has when an edge died beside Redis.
func atOnce(all []history.Outage) []history.Outage {
	edge := slices.ContainsFunc(all, func(o history.Outage) bool {
		return o.Server == history.Program && strings.HasPrefix(o.Programs[0], "edge")
	})
	for i := range all {
		if all[i].Server == history.Redis && edge {
			all[i].Recovery = scaled(recoveryDead)
		}
	}
	return all
}

// stamp notes when a fault broke what it breaks.
func stamp(all []history.Outage, begun, broken, healing, healed time.Time) []history.Outage {
	all = slices.Clone(all)
	for i := range all {
		all[i].Begun, all[i].Broken, all[i].Healing, all[i].Healed = begun, broken, healing, healed
	}
	return all
}
