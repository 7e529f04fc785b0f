package metrics_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/duty"
	"github.com/seckill-edge/seckill/backend/metrics"
)

// The panics of every duty are there from the start, as 0: alerts need that.
func TestPanicsOfEveryDutyAreCountedFromZero(t *testing.T) {
	families, err := metrics.New().Registry.Gather()
	require.NoError(t, err)
	var counted []string
	for _, f := range families {
		if f.GetName() == "seckill_backend_panics_total" {
			for _, m := range f.GetMetric() {
				counted = append(counted, m.GetLabel()[0].GetValue())
				require.Zero(t, m.GetCounter().GetValue())
			}
		}
	}
	require.Contains(t, counted, "tide")
	require.ElementsMatch(t, duty.Names(), slices.Compact(counted))
}
