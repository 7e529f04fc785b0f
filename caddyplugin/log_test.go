package caddyplugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestLiveLog(t *testing.T) {
	first, firstLines := observer.New(zapcore.InfoLevel)
	second, secondLines := observer.New(zapcore.WarnLevel)
	live := newLiveLog(zap.New(first).Named("seckill"))
	logger := live.logger().With("part", "publisher")

	logger.Info("connected", "attempt", 2)
	logger.Debug("ping")
	live.use(zap.New(second).Named("seckill"))
	logger.Info("connected")
	logger.Warn("lost")

	require.Len(t, firstLines.All(), 1)
	line := firstLines.All()[0]
	require.Equal(t, "seckill", line.LoggerName)
	require.Equal(t, "connected", line.Message)
	require.Equal(t, map[string]any{"part": "publisher", "attempt": int64(2)}, line.ContextMap())
	require.Len(t, secondLines.All(), 1)
	require.Equal(t, "lost", secondLines.All()[0].Message)
	require.Equal(t, map[string]any{"part": "publisher"}, secondLines.All()[0].ContextMap())
}
