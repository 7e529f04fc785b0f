package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seckill-edge/seckill/backend/dead"
)

// DeadLetters are dead letters in JSON, the same in the API and in the commands.
type DeadLetters struct {
	Total   int          `json:"total" doc:"How many there are, those not listed included."`
	Letters []DeadLetter `json:"letters"`
}

// DeadLetter is one dead letter in JSON.
type DeadLetter struct {
	ID         string            `json:"id" doc:"The message's id, escaped, or made from its body."`
	Reason     string            `json:"reason" doc:"Why it was buried; what cannot be printed is escaped."`
	Attempt    int               `json:"attempt" doc:"Failed tries to store it."`
	ProductID  string            `json:"product_id,omitempty"`
	ActivityID string            `json:"activity_id,omitempty"`
	Since      *time.Time        `json:"since,omitempty" doc:"When the oldest of its orders was reserved, if it says so."`
	Orders     []DeadOrder       `json:"orders" doc:"The orders that can be read."`
	Bad        []DeadEntry       `json:"bad" doc:"The entries that cannot."`
	Unreadable string            `json:"unreadable,omitempty" doc:"Why nothing of it can be read."`
	Headers    map[string]string `json:"headers,omitempty" doc:"Escaped; with one letter only."`
	Body       string            `json:"body,omitempty" doc:"The whole body, escaped as in a Go string; with one letter only."`
	IfReplayed string            `json:"if_replayed,omitempty" doc:"What a replay would do, if no order of it can be read; with one letter only."`
	StoresAway string            `json:"stores_away,omitempty" doc:"Why the stores could not be asked about its orders."`
}

// DeadOrder is an order of a dead letter.
type DeadOrder struct {
	ID         string    `json:"order_id"`
	UserID     string    `json:"user_id"`
	Quantity   int       `json:"quantity"`
	Claim      int       `json:"claim"`
	ReservedAt time.Time `json:"reserved_at"`
	DeadFate
}

// DeadFate is what the stores say of an order; empty in a list.
type DeadFate struct {
	Stored     string `json:"stored,omitempty" doc:"The state of its row in SQL."`
	Because    string `json:"because,omitempty" doc:"Why the row is rejected."`
	InRedis    string `json:"in_redis,omitempty" enum:"queued,created,settled,paid,rejected,cancelled,expired,unknown" doc:"What the buyer's record says."`
	IfReplayed string `json:"if_replayed,omitempty" doc:"What a replay would make of it."`
}

// DeadEntry is an entry of a dead letter that cannot be read.
type DeadEntry struct {
	OrderID string `json:"order_id,omitempty" doc:"If that much could be read."`
	Raw     string `json:"raw" doc:"Escaped as in a Go string."`
	Error   string `json:"error"`
	DeadFate
}

// DeadDone says what a replay or a drop has done.
type DeadDone struct {
	Letters  int `json:"letters"`
	Orders   int `json:"orders" doc:"Readable orders in them."`
	Rejected int `json:"rejected" doc:"Those whose units were given back: they end as rejected."`
	Kept     int `json:"kept" doc:"Letters that a replay of all has left: no order of them can be read."`
}

// DeadLettersOf puts a list into JSON's shape.
func DeadLettersOf(letters []dead.Letter, total int) DeadLetters {
	out := DeadLetters{Total: total, Letters: make([]DeadLetter, len(letters))}
	for i, l := range letters {
		out.Letters[i] = deadLetterOf(l)
	}
	return out
}

// DeadShownOf puts whole letters into JSON's shape.
func DeadShownOf(shown []dead.Shown) DeadLetters {
	out := DeadLetters{Total: len(shown), Letters: make([]DeadLetter, len(shown))}
	for i, s := range shown {
		l := deadLetterOf(s.Letter)
		l.Body = dead.Escape(string(s.Message.Body))
		l.Headers = make(map[string]string, len(s.Message.Headers))
		for k, v := range s.Message.Headers {
			l.Headers[dead.Escape(k)] = dead.Escape(v)
		}
		if s.Hopeless() {
			l.IfReplayed = "refused: it would come straight back; drop it"
		}
		if s.Unknown != nil {
			l.StoresAway = s.Unknown.Error()
		}
		l.add(s.Fates)
		out.Letters[i] = l
	}
	return out
}

// DeadDoneOf puts a count into JSON's shape.
func DeadDoneOf(d dead.Done) DeadDone { return DeadDone(d) }

func deadLetterOf(l dead.Letter) DeadLetter {
	out := DeadLetter{
		ID: l.ID, Reason: dead.Plain(l.Reason), Attempt: l.Attempt, ProductID: l.ProductID, ActivityID: l.ActivityID,
		Orders: make([]DeadOrder, len(l.Orders)), Bad: make([]DeadEntry, len(l.Bad)),
	}
	if !l.Since.IsZero() {
		since := instant(l.Since)
		out.Since = &since
	}
	if l.Wrong != nil {
		out.Unreadable = l.Wrong.Error()
	}
	for i, o := range l.Orders {
		out.Orders[i] = DeadOrder{ID: o.ID, UserID: o.UserID, Quantity: o.Quantity, Claim: o.Claim, ReservedAt: instant(o.ReservedAt)}
	}
	for i, b := range l.Bad {
		out.Bad[i] = DeadEntry{OrderID: b.OrderID, Raw: dead.Escape(string(b.Raw)), Error: b.Err.Error()}
	}
	return out
}

// add puts each fate to its order. The readable ones come first, then those of
// the bad entries with an id.
func (l *DeadLetter) add(fates []dead.Fate) {
	bad := 0
	for i, f := range fates {
		fate := DeadFate{IfReplayed: f.IfReplayed()}
		if f.Stored != nil {
			fate.Stored, fate.Because = string(f.Stored.State), string(f.Stored.Reason)
		}
		if !f.Bad {
			fate.InRedis = f.Mark.String()
			l.Orders[i].DeadFate = fate
			continue
		}
		for l.Bad[bad].OrderID != f.Order.ID {
			bad++
		}
		l.Bad[bad].DeadFate = fate
		bad++
	}
}

type (
	deadInput struct {
		Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	deadByID struct {
		ID string `path:"id" doc:"Percent-encoded: ids may have a slash."`
	}
	deadChoice struct {
		Body struct {
			ID  string `json:"id,omitempty" doc:"Which letter; or all."`
			All bool   `json:"all,omitempty" doc:"Every letter that is there now."`
		}
	}
	deadOutput     struct{ Body DeadLetters }
	deadDoneOutput struct{ Body DeadDone }
)

// describeDead registers the operations on dead letters.
func describeDead(api huma.API, h *handlers) {
	register(api, h, http.MethodGet, "/api/dead", "list-dead-letters", "Dead letters, the oldest first", h.deadList)
	register(api, h, http.MethodGet, "/api/dead/{id}", "show-dead-letter", "The letters of one id, whole, with what a replay would do", h.deadShow)
	register(api, h, http.MethodPost, "/api/dead/replay", "replay-dead-letters", "Send letters to the orders again; one whose units were given back ends rejected", h.deadReplay)
	register(api, h, http.MethodPost, "/api/dead/drop", "drop-dead-letters", "Remove letters for good", h.deadDrop)
}

func (h *handlers) deadList(ctx context.Context, in *deadInput) (*deadOutput, error) {
	letters, total, err := h.Dead.List(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return &deadOutput{DeadLettersOf(letters, total)}, nil
}

func (h *handlers) deadShow(ctx context.Context, in *deadByID) (*deadOutput, error) {
	shown, err := h.Dead.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &deadOutput{DeadShownOf(shown)}, nil
}

func (h *handlers) deadReplay(ctx context.Context, in *deadChoice) (*deadDoneOutput, error) {
	return h.deadDo(ctx, in, h.Dead.Replay)
}

func (h *handlers) deadDrop(ctx context.Context, in *deadChoice) (*deadDoneOutput, error) {
	return h.deadDo(ctx, in, h.Dead.Drop)
}

func (h *handlers) deadDo(ctx context.Context, in *deadChoice, do func(context.Context, string) (dead.Done, error)) (*deadDoneOutput, error) {
	if (in.Body.ID == "") != in.Body.All {
		return nil, huma.Error422UnprocessableEntity(`say which letters: {"id":"..."} or {"all":true}`)
	}
	done, err := do(ctx, in.Body.ID)
	if err != nil {
		return nil, err
	}
	return &deadDoneOutput{DeadDoneOf(done)}, nil
}
