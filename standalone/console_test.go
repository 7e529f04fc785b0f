package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/queue"
	"github.com/seckill-edge/seckill/internal/servicetest"
)

// TestConsolePage looks at the console with a real browser, on a broker that has a
// dead letter, unless -short is given.
func TestConsolePage(t *testing.T) {
	looks := map[string]func(*testing.T){}
	if !testing.Short() {
		looks["a dead letter"] = lookAtConsole
	}
	for name, look := range looks {
		t.Run(name, look)
	}
}

func lookAtConsole(t *testing.T) {
	address := servicetest.SharedRabbitMQ(t).VHost(t)
	s := startSale(t, "--units", "3", "--rabbitmq", address)
	b := openBrowser(t)
	b.visit(s.Console)
	b.until(`document.querySelectorAll("#rows tr").length === 1`)
	require.Equal(t, "false", b.eval(`document.getElementById("notes").checkVisibility()`), "nothing to note")

	broker, err := queue.Open(address)
	require.NoError(t, err)
	p := broker.Publisher(queue.Options{})
	servicetest.Eventually(t, func() bool {
		return p.Publish(t.Context(), queue.Dead, queue.Message{Body: []byte("noise")}) == nil
	})
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, broker.Close())
	b.until(`document.getElementById("notes").textContent === "1 dead letter: seckilld dead list"`)
	require.Equal(t, "true", b.eval(`document.getElementById("notes").checkVisibility()`))
	require.Empty(t, b.complaints)
}
