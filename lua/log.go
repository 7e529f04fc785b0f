package lua

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends what the Redis library says by itself to log, at debug level: all of
// it is known from the errors of calls. Without it the library prints lines of its
// own to standard error. It is for the whole process, and safe for concurrent use.
func LogTo(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ *slog.Logger }

// Printf implements the library's interface.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.Enabled(ctx, slog.LevelDebug) {
		l.DebugContext(ctx, "redis client: "+fmt.Sprintf(format, v...))
	}
}
