package lua

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// FuzzReplies gives every function that reads a script's reply replies that no
// script of ours gives: another version's, or a server's that is none. They must
// end in an error or in values within their bounds, never in a panic.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		`["a1","7","open",1764442047123,5,1,-6,"01kb7q3x5e8g9h0jkmnpqrstvw","key:01kb7q3x5e8g9h0jkmnpqrstvw"]`,
		`["a1","x","open",1,0,-9,0,-4,-10,9223372036854775807]`,
		`[1,0,1764442047123,0,0,"5","0","0","a1","t","1","2","5","1","0","open","1","r","2","r"]`,
		`[1,0,1,0,0,"-5","1e3","","","","","","","","","","","","",""]`,
		`[0,1,0,-1]`, `[0,2,2,2]`, `[-14]`, `[1,7]`, `[0,7]`, `[-5,0]`, `[1,9,4]`, `[-6,1,0]`, `[]`, `[null]`, `["",[],{}]`, `7`, `"OK"`, `null`,
		`["2:sold_out"]`, `["1:01kb7q3x5e8g9h0jkmnpqrstvw"]`, `["0:x"]`, `[7]`,
	} {
		f.Add(seed)
	}
	move := []Move{{UserID: "u", OrderID: "01kb7q3x5e8g9h0jkmnpqrstvw"}}
	a := Activity{ID: "a1", ProductID: "1001", Total: 5, Limit: 1, State: OnHold}
	f.Fuzz(func(t *testing.T, text string) {
		value, ok := replyOf(text)
		if !ok {
			return
		}
		ctx, c := t.Context(), answering{value: value}
		for n := 1; n <= 3; n++ {
			reqs := make([]Request, n)
			if b, err := Reserve(ctx, c, "1001", 1, reqs); err == nil {
				require.Len(t, b.Results, n)
				for _, r := range b.Results {
					require.True(t, r.Outcome <= Reserved && r.Outcome >= KeyReused || r.Outcome == NoTicket)
				}
			}
		}
		if s, there, err := Audit(ctx, c, "1001"); err == nil && there && !s.Damaged {
			require.Equal(t, s.Total, s.Available+s.Frozen+s.Sold)
			require.GreaterOrEqual(t, min(s.Available, s.Frozen, s.Sold), int64(0))
		}
		for _, moves := range []func() ([]Moved, error){
			func() ([]Moved, error) { return Settle(ctx, c, "1001", MarkSettled, move) },
			func() ([]Moved, error) { return Release(ctx, c, "1001", MarkRejected, move) },
		} {
			if moved, err := moves(); err == nil {
				require.Len(t, moved, len(move))
			}
		}
		if stand, err := NoteRefusals(ctx, c, "1001", time.Hour, []RefusalNote{{UserID: "u", Refusal: Refusal{OrderID: move[0].OrderID}}}); err == nil {
			require.Len(t, stand, 1)
			require.True(t, stand[0] == Refusal{} || stand[0].OrderID == move[0].OrderID && stand[0].Quantity > 0 && (stand[0].Reason == "") != (stand[0].Instead == ""))
		}
		_, _, _ = SetState(ctx, c, "1001", "a1", Open)
		_, _ = Preheat(ctx, c, a)
		_, _, _ = Hold(ctx, c, a, "")
		_, _ = Resize(ctx, c, "1001", "a1", 1, 9)
	})
}

// answering is a server that answers everything with the same.
type answering struct {
	redis.Scripter
	value any
}

func (a answering) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetVal(a.value)
	return cmd
}

// replyOf makes of JSON what the client makes of a reply.
func replyOf(text string) (any, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	return asReply(v), true
}

func asReply(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		return v.String()
	case []any:
		for i := range v {
			v[i] = asReply(v[i])
		}
		return v
	case map[string]any:
		out := make(map[any]any, len(v))
		for k, e := range v {
			out[k] = asReply(e)
		}
		return out
	}
	return v
}
