package usage

import (
	"io"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for name, tc := range map[string]struct{ arg, want string }{
		"a word":          {"--units=many", `--units "many": must be a whole number`},
		"too large":       {"--units=99999999999999999999", `--units "99999999999999999999": must be a whole number, and within its bounds`},
		"below nothing":   {"--seed=-1", `--seed "-1": must be a whole number, 0 or more`},
		"without unit":    {"--wait=5", `--wait "5": must be a duration with its unit, such as 250ms`},
		"neither yes, no": {"--json=perhaps", `--json "perhaps": must be true or false`},
		"unknown":         {"--bogus", "unknown flag: --bogus"},
	} {
		t.Run(name, func(t *testing.T) {
			f := pflag.NewFlagSet("test", pflag.ContinueOnError)
			f.SetOutput(io.Discard)
			f.Int64("units", 1, "")
			f.Uint64("seed", 1, "")
			f.Duration("wait", time.Second, "")
			f.Bool("json", false, "")
			err := Words(f.Parse([]string{tc.arg}))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "strconv")
		})
	}
	require.NoError(t, Words(nil))
}
