package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/e2e/history"
)

// logTail reads what a program logs from now on.
type logTail struct {
	by, path string
	from     int64
}

func (w *watcher) follow(by, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the log of %s: %w", by, err)
	}
	w.logs = append(w.logs, &logTail{by, path, info.Size()})
	return nil
}

// read returns the lines that begin or end an outage.
func (l *logTail) read() (lines []history.Line, err error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(l.from, io.SeekStart); err != nil {
		return nil, err
	}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line, ok := outageLine(l.by, scanner.Text()); ok {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}

// The words with which our programs begin and end what they say of an outage.
var (
	beginnings = []string{"does not answer", "failed; trying again and again", "is away", "refuses"}
	endings    = []string{"answers again", "works again", "is back", "takes writes again"}
)

// outageLine reads one line of a log, Caddy's JSON or slog's text.
func outageLine(by, text string) (history.Line, bool) {
	at, message, product := fields(text)
	line := history.Line{By: by, At: at, Text: message}
	topic := message
	found := false
	if strings.Contains(message, "still") { // neither a beginning nor an end
		return line, false
	}
	for _, words := range endings {
		if before, _, is := strings.Cut(message, words); is && !found {
			topic, found = before, true
		}
	}
	for _, words := range beginnings {
		if before, _, is := strings.Cut(message, words); is && !found {
			topic, found, line.Begins = before, true, true
		}
	}
	if !found || at.IsZero() {
		return line, false
	}
	line.Server = serverIn(topic)
	line.What = strings.TrimSpace(strings.TrimRight(topic, " :") + " " + product)
	return line, true
}

// serverIn is the server that the subject of a line names.
func serverIn(topic string) history.Server {
	lower := strings.ToLower(topic)
	for words, server := range map[string]history.Server{"redis": history.Redis, "database": history.Database, "broker": history.Broker} {
		if strings.Contains(lower, words) {
			return server
		}
	}
	return ""
}

// fields are the time, the message and the product of a line.
func fields(text string) (at time.Time, message, product string) {
	var entry struct {
		TS      float64 `json:"ts"`
		Msg     string  `json:"msg"`
		Product string  `json:"product"`
	}
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &entry) == nil {
		return time.UnixMicro(int64(entry.TS * 1e6)), entry.Msg, entry.Product
	}
	at, _ = time.Parse("2006-01-02T15:04:05.999Z07:00", valueOf(text, "time="))
	return at, valueOf(text, "msg="), valueOf(text, "product=")
}

// valueOf is one value of slog's text.
func valueOf(text, name string) string {
	_, value, found := strings.Cut(" "+text, " "+name)
	switch {
	case !found:
		return ""
	case !strings.HasPrefix(value, `"`):
		value, _, _ = strings.Cut(value, " ")
		return value
	}
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			return value[1:i]
		}
	}
	return value
}
