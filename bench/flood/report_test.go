package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	o := options{strangers: 1000, honest: 10, abuse: 200, within: time.Minute, memory: 512}
	good := seen{
		strangers: counts{letIn: 1000}, abuser: counts{letIn: 61, limited: 5900},
		served: 10, took: 30 * time.Second, peak: 300,
	}
	conclusion := func(s seen) (string, int) {
		var out strings.Builder
		code := conclude(&out, s.judge(o))
		return out.String(), code
	}
	said, code := conclusion(good)
	require.Equal(t, exitDone, code)
	require.Equal(t, 8, strings.Count(said, "held  "), said)
	for name, tc := range map[string]struct {
		spoil func(*seen)
		code  int
		says  string
	}{
		"slow":              {func(s *seen) { s.strangers.letIn = 900 }, exitUnproven, "NOT PROVEN  900 of 1000 strangers"},
		"stranger lost":     {func(s *seen) { s.strangers = counts{letIn: 999, other: 1} }, exitWrong, "WRONG       1 strangers got an answer"},
		"strangers limited": {func(s *seen) { s.strangers = counts{letIn: 990, limited: 10} }, exitWrong, "10 strangers were limited"},
		"abuser free":       {func(s *seen) { s.abuser.letIn = 62 }, exitWrong, "let in 62 times, 61 are his share"},
		"abuser idle":       {func(s *seen) { s.abuser.limited = 100 }, exitUnproven, "NOT PROVEN  the abuser called 161 times only"},
		"abuser lost":       {func(s *seen) { s.abuser.other = 1 }, exitWrong, "the abuser got 1 answers"},
		"honest refused":    {func(s *seen) { s.served, s.failure = 9, "429" }, exitWrong, "9 of 10 honest buyers were served; first failure: 429"},
		"memory":            {func(s *seen) { s.peak = 513 }, exitWrong, "needed 513 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			tc.spoil(&s)
			said, code := conclusion(s)
			require.Equal(t, tc.code, code)
			require.Contains(t, said, tc.says)
			require.Equal(t, 7, strings.Count(said, "held  "), said)
		})
	}
	s := good
	s.strangers.letIn, s.peak = 900, 513
	said, code = conclusion(s)
	require.Equal(t, exitWrong, code, "slow and wrong is wrong: %s", said)
}

// Every stranger has a /64 of his own, and no request becomes longer.
func TestNetwork(t *testing.T) {
	for number, want := range map[uint64]string{
		0: "2001:0db8:0000:0000::1", 1: "2001:0db8:0000:0001::1", 0x1_2345: "2001:0db8:0001:2345::1", 0xffff_fffe: "2001:0db8:ffff:fffe::1",
	} {
		request := []byte("POST / HTTP/1.1\r\nX-Forwarded-For: 2001:0db8:1111:1111::1\r\n\r\n")
		network(request, number)
		require.Equal(t, "POST / HTTP/1.1\r\nX-Forwarded-For: "+want+"\r\n\r\n", string(request))
	}
}
