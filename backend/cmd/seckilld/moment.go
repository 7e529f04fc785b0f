package main

import (
	"strings"
	"time"
)

// moment is a time as the flags take it, in RFC 3339: "now", or "+2h" from now on. What
// is neither is left as it is, for the draft's own check.
func moment(text string, now time.Time) string {
	if text == "now" {
		return now.UTC().Format(time.RFC3339)
	}
	if span, relative := strings.CutPrefix(text, "+"); relative {
		if d, err := time.ParseDuration(span); err == nil {
			return now.Add(d).UTC().Format(time.RFC3339)
		}
	}
	return text
}
