package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 11, 20, 0, 0, 0, time.FixedZone("", 8*3600))
	for text, is := range map[string]string{
		"now":                       "2026-11-11T12:00:00Z",
		"+2h":                       "2026-11-11T14:00:00Z",
		"+1h30m":                    "2026-11-11T13:30:00Z",
		"2026-11-11T20:00:00+08:00": "2026-11-11T20:00:00+08:00",
		"+two hours":                "+two hours",
		"2h":                        "2h",
		"":                          "",
	} {
		require.Equal(t, is, moment(text, now), text)
	}
}
