package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckTitle(t *testing.T) {
	for name, good := range map[string]string{
		"none":              "",
		"plain":             "Phone at half price",
		"90 of 3 bytes":     strings.Repeat("秒", 90),
		"255 of 3 bytes":    strings.Repeat("秒", 255),
		"255 of 4 bytes":    strings.Repeat("🎉", 255),
		"right to left":     "هاتف بنصف السعر",
		"a joined emoji":    "👩\u200d👧 phone",
		"Persian":           "می\u200cخواهم",
		"accents apart":     "e\u0301tui",
		"a wide blank":      "手机\u3000半价",
		"a no-break blank":  "10\u00a0000",
		"quotes, tags":      `<b>"100%" & more</b>`,
		"an emoji's colour": "❤\ufe0f",
	} {
		require.NoError(t, CheckTitle(good), name)
	}
	for name, bad := range map[string]string{
		"256 characters":       strings.Repeat("a", 256),
		"256 of 3 bytes":       strings.Repeat("秒", 256),
		"no UTF-8":             "a\xff",
		"half a character":     "秒"[:2],
		"a joiner in front":    "\u200dphone",
		"a joiner behind":      "phone\u200d",
		"two joiners":          "a\u200d\u200db",
		"a joiner at a blank":  "a \u200db",
		"a joiner and another": "a\u200d\u202eb",
	} {
		require.Error(t, CheckTitle(bad), name)
	}
	for _, r := range []rune{
		0, '\t', '\n', '\r', 0x1b, 0x7f, 0x85, 0x9f, 0xad, 0x61c, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029,
		0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066, 0x2067, 0x2068, 0x2069, 0x206a, 0x206f,
		0xfeff, 0xfff9, 0xfffb, 0x1d173, 0xe0001, 0xe0041,
	} {
		for _, title := range []string{string(r), "Phone" + string(r), string(r) + "Phone", "Ph" + string(r) + "one"} {
			require.ErrorContains(t, CheckTitle(title), fmt.Sprintf("U+%04X", r))
		}
	}
}
