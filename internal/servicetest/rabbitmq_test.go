package servicetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServers needs the servers installed unless -short.
func TestServers(t *testing.T) {
	cases := map[string]func(*testing.T){"not installed": testMissing}
	if !testing.Short() {
		cases["rabbitmq"] = testRabbitMQ
		cases["mariadb"] = testMariaDB
		cases["shared"] = testShared
	}
	for name, run := range cases {
		t.Run(name, run)
	}
}

func testMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	kept := outsidePath
	outsidePath = nil
	t.Cleanup(func() { outsidePath = kept })
	require.Equal(t, []string{"redis-server", "rabbitmq-server", "mariadb-server"}, Missing())
	_, err := StartRabbitMQ(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "apt-get install rabbitmq-server or run make test")
	_, err = StartMariaDB(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "apt-get install mariadb-server or run make test")
}

func testShared(t *testing.T) {
	m := SharedMariaDB(t)
	require.Same(t, m, SharedMariaDB(t))
	require.NoError(t, sharedMariaDB.end())
	require.Error(t, m.answers(t.Context()))
	require.NoDirExists(t, m.dir)
}

func testRabbitMQ(t *testing.T) {
	r := RabbitMQForTest(t)
	url := r.VHost(t)
	require.Contains(t, url, r.Addr())
	out, err := r.Ctl(t.Context(), "list_vhosts", "name")
	require.NoError(t, err)
	require.Contains(t, out, "test-1")

	require.NoError(t, r.Pause())
	require.Error(t, r.answers(t.Context()))
	require.NoError(t, r.Resume())
	require.NoError(t, r.answers(t.Context()))

	require.NoError(t, r.Kill())
	require.Error(t, r.answers(t.Context()))
	require.NoError(t, r.Restart(t.Context()))
	out, err = r.Ctl(t.Context(), "list_vhosts", "name")
	require.NoError(t, err)
	require.Contains(t, out, "test-1", "data survives a kill")
	require.NoError(t, r.Stop())
}

func testMariaDB(t *testing.T) {
	m := MariaDBForTest(t)
	require.NoError(t, m.CreateDatabase(t.Context(), "kept"))
	require.Contains(t, m.DSN("kept"), "parseTime=true")
	require.NoError(t, m.Kill())
	require.Error(t, m.answers(t.Context()))
	require.NoError(t, m.Restart(t.Context()))
	require.Error(t, m.CreateDatabase(t.Context(), "kept"), "data survives a kill")
	one, other := m.Database(t), m.Database(t)
	require.NotEqual(t, one, other)
	require.NoError(t, m.Stop())
}
