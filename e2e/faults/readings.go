package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seckill-edge/seckill/e2e/history"
	"github.com/seckill-edge/seckill/internal/queue"
)

// reading makes claims of what was answered; none if it says nothing that is judged.
type reading func(status int, body []byte) []history.Statement

// edgeStatus reads GET /seckill/status of Caddy's admin endpoint.
func edgeStatus(status int, body []byte) []history.Statement {
	var said struct {
		Ready  bool
		Reason string
		Causes map[string]string
	}
	if status != http.StatusOK || json.Unmarshal(body, &said) != nil {
		return nil
	}
	if said.Ready {
		return []history.Statement{{Claim: history.Ready, Text: "ready"}}
	}
	parts := slices.Collect(maps.Keys(said.Causes))
	if len(parts) == 0 {
		part, _, _ := strings.Cut(said.Reason, ":")
		parts = []string{part}
	}
	return []history.Statement{{Claim: history.NotReady, Names: namesIn(parts...), Text: said.Reason}}
}

// namesIn finds the servers that are named by our words for parts.
func namesIn(words ...string) (names []history.Server) {
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		switch word {
		case "redis":
			names = append(names, history.Redis)
		case "queue", "consumer", "rabbitmq", "broker":
			names = append(names, history.Broker)
		case "database", "schema":
			names = append(names, history.Database)
		}
	}
	return names
}

// blamed are the parts that a list of causes blames. A consumer waits for the broker or
// for the database: what the database has as well, or only a database can have, is the
// database's.
func blamed(causes map[string]string) []string {
	parts := slices.Collect(maps.Keys(causes))
	at := slices.Index(parts, "consumer")
	if at < 0 {
		return parts
	}
	cause := causes["consumer"]
	if cause == causes["database"] || !slices.Contains(queue.Causes, queue.Cause(cause)) {
		parts[at] = "database"
	}
	return parts
}

// readyz reads a backend's GET /readyz.
func readyz(status int, body []byte) []history.Statement {
	var said struct {
		Ready    bool
		NotReady []string          `json:"not_ready"`
		Why      map[string]string `json:"why"`
	}
	if json.Unmarshal(body, &said) != nil || said.Ready != (status == http.StatusOK) {
		return nil
	}
	if said.Ready {
		return []history.Statement{{Claim: history.Ready, Text: "ready"}}
	}
	// The consumer also waits for the database.
	if at := slices.Index(said.NotReady, "consumer"); at >= 0 && strings.Contains(said.Why["consumer"], "database") {
		said.NotReady[at] = "database"
	}
	return []history.Statement{{Claim: history.NotReady, Names: namesIn(said.NotReady...), Text: fmt.Sprint("not ready: ", said.Why)}}
}

// edgeMetric and backendMetric read Prometheus's text.
func edgeMetric(_ int, body []byte) []history.Statement {
	switch sample(body, "caddy_seckill_ready") {
	case "1":
		return []history.Statement{{Claim: history.Ready, Text: "1"}}
	case "0":
		return []history.Statement{{Claim: history.NotReady, Text: "0"}}
	}
	return nil
}

// A backend that says that it waits for the database blames it.
func backendMetric(_ int, body []byte) (said []history.Statement) {
	const ready, paused = "seckill_backend_ready", "seckill_backend_database_paused"
	switch sample(body, ready) {
	case "1":
		said = append(said, history.Statement{Place: ready, Claim: history.Ready, Text: "1"})
	case "0":
		said = append(said, history.Statement{Place: ready, Claim: history.NotReady, Text: "0"})
	}
	switch sample(body, paused) {
	case "1":
		said = append(said, history.Statement{Place: paused, Claim: history.NotReady, Names: []history.Server{history.Database}, Text: "1"})
	case "0":
		said = append(said, history.Statement{Place: paused, Text: "0"}) // ends a row of others
	}
	return said
}

func sample(body []byte, name string) string {
	for line := range strings.Lines(string(body)) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// activity reads what the API and the command line say of a sale.
func activity(status int, body []byte) []history.Statement {
	var said struct {
		State, Sale, Why string
		Causes           map[string]string
	}
	if status != http.StatusOK || json.Unmarshal(body, &said) != nil || said.Why == "" {
		return nil
	}
	claim := func(c history.Claim, names ...history.Server) []history.Statement {
		return []history.Statement{{Claim: c, Names: names, Text: said.Why}}
	}
	why, then, _ := strings.Cut(said.Why, "; but ")
	parts := blamed(said.Causes)
	switch {
	case said.Causes["backend"] == "none_running":
		return claim(history.NoBackend)
	case len(parts) > 0:
		return claim(history.NotReady, namesIn(parts...)...)
	case said.State == "held" || said.Sale == "held" || strings.HasPrefix(why, "held: nothing is sold") || strings.HasPrefix(why, "held in Redis though"):
		return claim(history.HeldBySomebody)
	case strings.HasPrefix(then, "no backend"):
		return claim(history.NoBackend)
	case strings.HasPrefix(then, "the broker"):
		return claim(history.NotReady, history.Broker)
	case then != "":
		return claim(history.NotReady)
	case why == "selling":
		return claim(history.Selling)
	case why == "sold out" || strings.HasPrefix(why, "every unit is reserved"):
		return claim("")
	}
	return claim(history.NotReady)
}
