package secret

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// around is what may stand around a secret and is no part of it.
var around = []string{"", "\n", "\r\n", "\r", " ", "\t", "\n\n", "\ufeff", "\ufeff \r\n", "\u00a0", "\u3000", "\v", "\f", "\u0085", "\u2028"}

func TestWhatStandsAroundIsTakenOff(t *testing.T) {
	for _, before := range around {
		for _, behind := range around {
			got, err := Clean(before + "s3cret of \u00e4" + behind)
			require.NoError(t, err, "%q %q", before, behind)
			require.Equal(t, "s3cret of \u00e4", got)
		}
		_, err := Clean(before)
		require.ErrorIs(t, err, ErrEmpty, "%q", before)
	}
	const pem = "-----BEGIN PUBLIC KEY-----\r\nAAAA\n-----END PUBLIC KEY-----"
	got, err := Clean("\ufeff" + pem + "\n")
	require.NoError(t, err)
	require.Equal(t, pem, got)
}

func TestWhatIsNoSecretIsNamed(t *testing.T) {
	for text, says := range map[string]string{
		"s3c\nret":                      "U+000A",
		"s3c\x00ret":                    "U+0000",
		"s3c\ufeffret":                  "U+FEFF",
		"s3cret\x1b[0m":                 "U+001B",
		"s3cret\xff":                    "UTF-8",
		"\xff\xfes\x003\x00c\x00r\x00":  "UTF-16",
		"\xfe\xff\x00s\x003\x00c\x00r":  "UTF-16",
		"-----BEGIN X-----\n\x00s3cret": "U+0000",
	} {
		_, err := Named("SECKILL_X", text)
		require.ErrorContains(t, err, says, "%q", text)
		require.ErrorContains(t, err, "SECKILL_X")
		require.NotContains(t, err.Error(), "s3c")
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	good, blank := file("good", "\ufeffs3cret\r\n"), file("blank", " \n")
	for name, tc := range map[string]struct {
		env        map[string]string
		want, says string
	}{
		"not set":         {nil, "", ""},
		"set":             {map[string]string{"X": "s3cret\n"}, "s3cret", ""},
		"set to nothing":  {map[string]string{"X": ""}, "", "X is empty"},
		"set to a blank":  {map[string]string{"X": " "}, "", "X is empty"},
		"a file":          {map[string]string{"X_FILE": good}, "s3cret", ""},
		"a file, and LF":  {map[string]string{"X_FILE": good + "\n"}, "s3cret", ""},
		"an empty file":   {map[string]string{"X_FILE": blank}, "", "the file is empty"},
		"no file":         {map[string]string{"X_FILE": "/nowhere"}, "", `X_FILE "/nowhere": must be a readable file`},
		"no file's name":  {map[string]string{"X_FILE": ""}, "", "X_FILE is empty"},
		"both":            {map[string]string{"X": "s3cret", "X_FILE": good}, "", "both set"},
		"both, one empty": {map[string]string{"X": "", "X_FILE": good}, "", "both set"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Environment(func(n string) (string, bool) { v, set := tc.env[n]; return v, set }, "X")
			require.Equal(t, tc.want, got)
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}
