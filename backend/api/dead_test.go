package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/queue"
)

func decoded[T any](t *testing.T, r *httptest.ResponseRecorder) T {
	require.Equal(t, http.StatusOK, r.Code, r.Body)
	var out T
	require.NoError(t, json.Unmarshal(r.Body.Bytes(), &out))
	return out
}

func TestDeadLettersThroughTheAPI(t *testing.T) {
	s := newSite(t, "")
	p := s.broker.Publisher(queue.Options{})
	bury := func(id, body string) {
		require.NoError(t, p.Publish(t.Context(), queue.Dead, queue.Message{ID: id, Body: []byte(body), Headers: map[string]string{queue.HeaderReason: "hurts"}}))
	}
	const id = "01kb0c3v9t4z6q8w2x5y7a1d3f"
	bury("relay/7", "seckill/1\t1001\tsale\n"+id+"\tann\t1\t1\t1793700000000")
	bury("nonsense", "{}\xff")
	bury("more nonsense", "")

	list := decoded[DeadLetters](t, s.do(t, request{path: "/api/dead?limit=2"}))
	require.Equal(t, 3, list.Total)
	require.Len(t, list.Letters, 2)
	require.Equal(t, id, list.Letters[0].Orders[0].ID)
	require.Equal(t, "hurts", list.Letters[0].Reason)
	require.Empty(t, list.Letters[0].Body)
	require.NotEmpty(t, list.Letters[1].Unreadable)

	shown := decoded[DeadLetters](t, s.do(t, request{path: "/api/dead/relay%2F7"}))
	require.Equal(t, "unknown", shown.Letters[0].Orders[0].InRedis)
	require.Contains(t, shown.Letters[0].Orders[0].IfReplayed, "rejected")
	require.Contains(t, shown.Letters[0].Body, `seckill/1\t1001`)
	require.Equal(t, `{}\xff`, decoded[DeadLetters](t, s.do(t, request{path: "/api/dead/nonsense"})).Letters[0].Body)

	post := func(verb, body string) *httptest.ResponseRecorder {
		return s.do(t, request{method: http.MethodPost, path: "/api/dead/" + verb, body: body})
	}
	require.Equal(t, DeadDone{Letters: 1, Orders: 1, Rejected: 1}, decoded[DeadDone](t, post("replay", `{"id":"relay/7"}`)))
	require.Equal(t, DeadDone{Letters: 1}, decoded[DeadDone](t, post("drop", `{"id":"nonsense"}`)))
	require.Equal(t, DeadDone{Letters: 1}, decoded[DeadDone](t, post("drop", `{"all":true}`)))
	require.Equal(t, http.StatusNotFound, post("replay", `{"id":"relay/7"}`).Code)
	require.Equal(t, http.StatusUnprocessableEntity, post("drop", `{}`).Code)
	require.Equal(t, http.StatusUnprocessableEntity, post("drop", `{"id":"x","all":true}`).Code)
	require.Equal(t, http.StatusUnprocessableEntity, s.do(t, request{path: "/api/dead?limit=1001"}).Code)
	require.NoError(t, p.Close(t.Context()))
}

// Warnings do not make a backend unready; their reasons are for who has the token.
func TestReadyWarns(t *testing.T) {
	s := newSite(t, "hush")
	s.warnings = map[string]string{"redis_persistence": "appendonly is no"}
	type body struct {
		Ready    bool              `json:"ready"`
		Warnings []string          `json:"warnings"`
		Why      map[string]string `json:"why"`
	}
	require.Equal(t, body{Ready: true, Warnings: []string{"redis_persistence"}}, decoded[body](t, s.do(t, request{path: "/readyz"})))
	full := decoded[body](t, s.do(t, request{path: "/readyz", header: map[string]string{"Authorization": "Bearer hush"}}))
	require.Equal(t, s.warnings, full.Why)
}

// The API's flag reaches the service; what it is for is tested with the commands.
func TestAcceptRedisRisk(t *testing.T) {
	s := newSite(t, "")
	require.Equal(t, http.StatusCreated, s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(unchanged)}).Code)
	for _, verb := range []string{"preheat", "open"} {
		out := s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/" + verb + "?accept_redis_risk=true"})
		require.Equal(t, http.StatusOK, out.Code, out.Body)
		require.Equal(t, http.StatusUnprocessableEntity,
			s.do(t, request{method: http.MethodPost, path: "/api/activities/1001/" + verb + "?accept_redis_risk=perhaps"}).Code)
	}
}
