package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/store"
	"github.com/seckill-edge/seckill/lua"
)

// A sale has one state in one word, whether Redis or SQL is asked.
func TestSaleState(t *testing.T) {
	start := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	end := start.Add(time.Hour)
	before, during := start.Add(-time.Millisecond), start
	for _, tc := range []struct {
		name   string
		state  store.ActivityState
		manual bool
		redis  lua.ActivityState // empty: it has nothing
		run    string            // the server that the stock was proven on
		left   int64
		now    time.Time
		want   lua.SaleState
	}{
		{"created", store.Scheduled, false, "", "", 0, before, lua.SaleScheduled},
		{"created, start passed", store.Scheduled, false, "", "", 0, during, lua.SaleUnavailable},
		{"created, to be opened by hand", store.Scheduled, true, "", "", 0, during, lua.SaleHeld},
		{"created, end passed", store.Scheduled, false, "", "", 0, end, lua.SaleEnded},
		{"open ahead of its start", store.Open, false, lua.Open, "r", 10, before, lua.SaleScheduled},
		{"open", store.Open, false, lua.Open, "r", 10, during, lua.SaleOpen},
		{"sold out", store.Open, false, lua.Open, "r", 0, during, lua.SaleSoldOut},
		{"held", store.Held, false, lua.OnHold, "r", 10, during, lua.SaleHeld},
		{"held ahead of its start", store.Held, false, lua.OnHold, "r", 10, before, lua.SaleHeld},
		{"being proven", store.Open, false, lua.OnHold, lua.Unproven, 10, during, lua.SaleUnavailable},
		{"Redis was restarted", store.Open, false, lua.Open, "another", 10, during, lua.SaleUnavailable},
		{"Redis has lost it", store.Open, false, "", "", 0, during, lua.SaleUnavailable},
		{"held, and Redis has lost it", store.Held, false, "", "", 0, during, lua.SaleHeld},
		{"end passed", store.Open, false, lua.Open, "r", 10, end, lua.SaleEnded},
		{"closed", store.Closed, false, lua.Closed, "r", 10, during, lua.SaleClosed},
		{"closed, keys expired", store.Closed, false, "", "", 0, end, lua.SaleClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := View{Activity: store.Activity{State: tc.state, Manual: tc.manual, Start: start, End: end}}
			if tc.redis != "" {
				v.Snapshot = &lua.Snapshot{
					Activity: lua.Activity{State: tc.redis, Start: start, End: end, RunID: tc.run}, ServerRun: "r", Available: tc.left, Now: tc.now,
				}
			}
			require.Equal(t, tc.want, v.saleAt(tc.now))
		})
	}
}
