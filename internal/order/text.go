package order

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxTitle bounds the title of an activity, in characters (code points), as the
// columns of both databases do.
const MaxTitle = 255

// CheckTitle says what is wrong with a title that people are to read; nil if nothing
// is. It may have up to MaxTitle characters and none that cannot be seen: control and
// format characters, which can turn the text around them or hide in it, line and
// paragraph separators. Joiners may stand between two characters that can be seen,
// since some scripts and emoji are written with them.
func CheckTitle(title string) error {
	if !utf8.ValidString(title) {
		return errors.New("must be UTF-8")
	}
	if n := utf8.RuneCountInString(title); n > MaxTitle {
		return fmt.Errorf("has %d characters, and must have at most %d", n, MaxTitle)
	}
	runes := []rune(title)
	for i, r := range runes {
		joins := (r == zeroWidthNonJoiner || r == zeroWidthJoiner) && i > 0 && i < len(runes)-1 && visible(runes[i-1]) && visible(runes[i+1])
		if unseen(r) && !joins {
			return fmt.Errorf("must not have the character U+%04X, which is not seen", r)
		}
	}
	return nil
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// unseen says that r is a control or format character, or a separator of lines.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
