package caddyplugin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// liveLog leads the log of an engine to that of the config that runs: an engine
// outlives the config it was made under, whose log files Caddy closes.
type liveLog struct{ to atomic.Pointer[zap.Logger] }

func newLiveLog(to *zap.Logger) *liveLog {
	l := new(liveLog)
	l.use(to)
	return l
}

// use leads everything that is logged from now on to another logger.
func (l *liveLog) use(to *zap.Logger) { l.to.Store(to) }

// logger returns a logger that follows l.
func (l *liveLog) logger() *slog.Logger {
	never := zapcore.Level(127) // a stack trace tells nothing about a lost connection
	return slog.New(zapslog.NewHandler(&liveCore{live: l}, zapslog.AddStacktraceAt(slog.Level(never))))
}

// liveCore is a zapcore.Core that asks its liveLog anew for each entry.
type liveCore struct {
	live   *liveLog
	fields []zapcore.Field
}

func (c *liveCore) Enabled(level zapcore.Level) bool {
	return c.live.to.Load().Core().Enabled(level)
}

func (c *liveCore) With(fields []zapcore.Field) zapcore.Core {
	return &liveCore{live: c.live, fields: append(slices.Clip(c.fields), fields...)}
}

func (c *liveCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c *liveCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	to := c.live.to.Load()
	entry.LoggerName = to.Name()
	if checked := to.Core().Check(entry, nil); checked != nil {
		checked.Write(append(slices.Clip(c.fields), fields...)...)
	}
	return nil
}

func (c *liveCore) Sync() error { return c.live.to.Load().Core().Sync() }

// redisLog takes what the Redis client says, a line for each attempt to connect
// in vain, off the standard error and into Caddy's log. What matters of it, the
// gate reports once.
type redisLog struct{}

func (redisLog) Printf(_ context.Context, format string, values ...any) {
	if line := caddy.Log().Named("seckill.redis").Check(zapcore.DebugLevel, "client"); line != nil {
		line.Write(zap.String("message", fmt.Sprintf(format, values...)))
	}
}
