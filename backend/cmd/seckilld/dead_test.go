package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// brokers are what the commands on dead letters are tested on.
func brokers() map[string]func(t *testing.T) string {
	all := map[string]func(t *testing.T) string{
		"memory": func(t *testing.T) string { return fmt.Sprint("memory:", t.Name(), time.Now().UnixNano()) },
	}
	if !testing.Short() {
		all["RabbitMQ"] = func(t *testing.T) string { return servicetest.SharedRabbitMQ(t).VHost(t) }
	}
	return all
}

// bury puts a message among the dead letters, as a backend does.
func (s *shell) bury(m queue.Message) {
	broker, err := queue.Open(s.env["SECKILL_RABBITMQ_URL"])
	require.NoError(s, err)
	p := broker.Publisher(queue.Options{})
	servicetest.Eventually(s, func() bool {
		err := p.Publish(s.Context(), queue.Dead, m)
		require.True(s, err == nil || errors.Is(err, queue.ErrNotSent), "%v", err)
		return err == nil
	})
	require.NoError(s, p.Close(s.Context()))
	require.NoError(s, broker.Close())
}

func TestDeadLettersByCommands(t *testing.T) {
	const id, bad = "01kb0c3v9t4z6q8w2x5y7a1d3f", "01kb0c3v9t4z6q8w2x5y7a1d3g"
	body := "seckill/1\t1001\tsale\n" + id + "\tann\u202e\t1\t1\t1793700000000\n" + bad + "\tbob\tmany\t1\t1793700000000\n\x1b[2J\xff"
	for name, address := range brokers() {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.env["SECKILL_RABBITMQ_URL"] = address(t)
			s.must("migrate")
			require.Equal(t, "no dead letters\n", s.must("dead", "list"))
			s.bury(queue.Message{ID: "edge/7", Body: []byte(body), Headers: map[string]string{queue.HeaderReason: "it \x1b[31mhurts", queue.HeaderAttempt: "5"}})
			s.bury(queue.Message{ID: "nonsense", Body: []byte("{}")})

			list := s.must("dead", "list")
			require.Contains(t, list, `edge/7`)
			require.Contains(t, list, id+" bad:"+bad+" +1")
			require.Contains(t, list, `it \x1b[31mhurts`)
			require.Contains(t, list, "unreadable")
			require.Contains(t, s.must("dead", "list", "--limit", "1"), "and 1 more")
			shown := s.must("dead", "show", "edge/7")
			require.Contains(t, shown, `user ann\u202e`)
			require.Contains(t, shown, "if replayed: rejected: Redis does not know it")
			require.Contains(t, shown, `\x1b[2J\xff`)
			for _, out := range []string{list, shown} {
				require.NotContains(t, out, "\x1b")
				require.NotContains(t, out, "\u202e")
			}
			var letters api.DeadLetters
			require.NoError(t, json.Unmarshal([]byte(s.must("dead", "show", "edge/7", "--json")), &letters))
			require.Equal(t, id, letters.Letters[0].Orders[0].ID)
			require.Equal(t, bad, letters.Letters[0].Bad[0].OrderID)
			require.Contains(t, letters.Letters[0].Body, `seckill/1\t1001`)

			var done api.DeadDone
			require.NoError(t, json.Unmarshal([]byte(s.must("dead", "replay", "edge/7", "--json")), &done))
			require.Equal(t, api.DeadDone{Letters: 1, Orders: 1, Rejected: 1}, done)
			require.Contains(t, s.must("dead", "list"), "nonsense")
			require.Contains(t, s.must("dead", "show", "nonsense"), "if replayed  refused: it would come straight back; drop it")
			for _, which := range []string{"nonsense", "--all"} {
				code, out, stderr := s.run("dead", "replay", which)
				require.Equal(t, exitRefused, code, out)
				require.Empty(t, out)
				require.Contains(t, stderr, "come straight back")
			}
			require.Contains(t, s.must("dead", "drop", "--all", "--yes"), "dropped 1 letter with 0 readable orders")
			require.Contains(t, s.must("dead", "replay", "--all"), "replayed 0 letters")
		})
	}
}

func TestDeadLettersUsage(t *testing.T) {
	s := newShell(t)
	s.must("migrate")
	s.bury(queue.Message{ID: "precious", Body: []byte("{}")})
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"dead", "bury"}, exitUsage, `"bury"`},
		{[]string{"dead", "show"}, exitUsage, "is missing"},
		{[]string{"dead", "list", "--limit", "0"}, exitUsage, "1 to 1000"},
		{[]string{"dead", "replay"}, exitUsage, "--all"},
		{[]string{"dead", "replay", ""}, exitUsage, "--all"},
		{[]string{"dead", "replay", "x", "--all"}, exitUsage, "--all"},
		{[]string{"dead", "drop", "--all"}, exitUsage, "--yes"},
		{[]string{"dead", "drop", "x", "y"}, exitUsage, "one letter"},
		{[]string{"dead", "show", "nobody's"}, exitRefused, "nobody's"},
		{[]string{"dead", "drop", "nobody's"}, exitRefused, "no dead letter"},
		{[]string{"dead", "list", "--rabbitmq", "amqp://u:secret@127.0.0.1:1/"}, exitFailed, "127.0.0.1:1"},
	} {
		code, out, err := s.run(tc.args...)
		require.Equal(t, tc.code, code, "%v: %s%s", tc.args, out, err)
		require.Empty(t, out)
		require.Contains(t, err, tc.says)
		require.NotContains(t, err, "secret")
	}
	require.Contains(t, s.must("dead", "list"), "precious")
	for _, command := range []string{"dead", "dead list", "dead show", "dead replay", "dead drop"} {
		require.Contains(t, s.must(append(strings.Fields(command), "--help")...), "Examples:", command)
	}
	_, found := order.IDTime("01kb0c3v9t4z6q8w2x5y7a1d3f")
	require.True(t, found, "the id of the examples is one")
}

// The commands name what is wrong with a Redis and go on when told to.
func TestStartingOnARedisThatForgets(t *testing.T) {
	bad := map[string]func(t *testing.T) string{}
	if !testing.Short() {
		bad["forgets"] = func(t *testing.T) string { return servicetest.RedisForTest(t, "--appendonly", "no").URL() }
	}
	for name, url := range bad {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.env["SECKILL_REDIS_URL"] = url(t)
			s.must("migrate")
			s.must(create()...)
			for _, verb := range []string{"preheat", "open"} {
				code, out, err := s.run("activity", verb, "1001")
				require.Equal(t, exitRefused, code, err)
				require.Empty(t, out)
				require.Contains(t, err, "appendonly is no")
				require.Contains(t, err, "CONFIG SET appendonly yes")
				require.Contains(t, err, "--accept-redis-risk")
				s.must("activity", verb, "1001", "--accept-redis-risk")
			}
			require.Contains(t, s.must("activity", "open", "1001"), "selling", "it is open already")
		})
	}
}
