package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

func sec(n float64) time.Time { return begin.Add(time.Duration(n * float64(time.Second))) }

// outage is one from 2 s to 5 s.
func outage(s Server, cause Cause, programs ...string) Outage {
	return Outage{Server: s, Cause: cause, Programs: programs, Recovery: 2 * time.Second, Begun: sec(2), Broken: sec(2.1), Healing: sec(5), Healed: sec(5.1)}
}

// says makes n statements, one each 200 ms from a moment on.
func says(by string, from float64, n int, claim Claim, names ...Server) (all []Statement) {
	for i := range n {
		at := sec(from + float64(i)/5)
		all = append(all, Statement{By: by, Place: "/place", At: at, End: at.Add(time.Millisecond), Claim: claim, Names: names, Text: string(claim)})
	}
	return all
}

// refusedClick is one that edge 1 has answered with 503.
func refusedClick(at float64) Click {
	return Click{Buyer: "buyer-8", Quantity: 1, Status: 503, Code: lua.Crowded, Start: sec(at), End: sec(at + 0.01)}
}

// during is a good sale with an outage and purchases that fail from 2.2 s on.
func during(o Outage) *History {
	h := good()
	h.Backends = 2
	h.Outages = []Outage{o}
	h.Clicks = append(h.Clicks, refusedClick(2.2))
	h.SellsAgain = sec(6)
	return h
}

func untruths(h *History) (texts []string) {
	for _, v := range Check(h).Violations {
		if v.Kind == Untrue {
			texts = append(texts, v.Text)
		}
	}
	return texts
}

func TestStatementsAreHeldAgainstWhatWasDone(t *testing.T) {
	for _, test := range []struct {
		name   string
		outage Outage
		says   []Statement
		want   int
	}{
		{"an edge is ready while Redis refuses writes", outage(Redis, Refuses), says("edge 1", 3, 3, Ready), 1},
		{"only twice: it may have known it from before", outage(Redis, Refuses), says("edge 1", 3, 2, Ready), 0},
		{"before any purchase has failed", outage(Redis, Refuses), says("edge 1", 2.11, 1, Ready), 0},
		{"an edge is not ready then", outage(Redis, Away), says("edge 1", 3, 5, NotReady, Redis), 0},
		{"it blames the broker", outage(Redis, Away), says("edge 1", 3, 3, NotReady, Broker), 1},
		{"it blames the broker beside Redis", outage(Redis, Away), says("edge 1", 3, 3, NotReady, Redis, Broker), 1},
		{"the broker of another edge is away", outage(Broker, Away, "edge 2"), says("edge 1", 3, 3, NotReady, Broker), 0},
		{"an edge sells without the broker", outage(Broker, Away), says("edge 1", 3, 3, Ready), 0},
		{"a backend does not store without it", outage(Broker, Away), says("backend 1", 3, 3, Ready), 1},
		{"a silent broker is noticed by its heartbeats", outage(Broker, Silent), says("backend 1", 3, 3, Ready), 0},
		{"a backend stores nothing in a database that refuses", outage(Database, Refuses), says("backend 2", 3, 3, Ready), 1},
		{"another backend's database", outage(Database, Away, "backend 1"), says("backend 2", 3, 3, Ready), 0},
		{"nothing is certain of what works now and then", outage(Redis, Fitful), says("edge 1", 3, 3, Ready), 0},
		{"a sale sells without Redis", outage(Redis, Away), says("command line", 3, 3, Selling), 1},
		{"a sale sells without the broker", outage(Broker, Away), says("command line", 3, 3, Selling), 0},
		{"not ready long after", outage(Redis, Away), says("edge 1", 7.2, 12, NotReady, Redis), 1},
		{"not ready for a moment after", outage(Redis, Away), says("edge 1", 7.2, 11, NotReady, Redis), 0},
		{"not ready before anything was broken", outage(Redis, Away), says("edge 1", -3, 12, NotReady, Redis), 1},
		{"no backend, and two run", outage(Redis, Refuses), says("command line", 3, 3, NoBackend), 1},
		{"no backend, and one runs", outage(Program, Away, "backend 1"), says("command line", 3, 3, NoBackend), 1},
		{"no backend, and none runs", outage(Program, Away, "backend 1", "backend 2"), says("command line", 3, 3, NoBackend), 0},
		{"no backend, and none reaches Redis", outage(Redis, Away, "backend 1", "backend 2"), says("command line", 3, 3, NoBackend), 0},
		{"held, by nobody", outage(Redis, Away), says("backend 1", 3, 3, HeldBySomebody), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := during(test.outage)
			h.Statements = test.says
			require.Len(t, untruths(h), test.want, "%v", untruths(h))
		})
	}
}

func TestHeldIsTrueWhereTheSaleIsHeld(t *testing.T) {
	h := during(outage(Database, Forgets))
	h.Holds = true
	h.Statements = says("backend 1", 3, 5, HeldBySomebody)
	h.Clicks = append(h.Clicks, Click{Buyer: "buyer-9", Quantity: 1, Status: 503, Code: lua.Held})
	require.Empty(t, untruths(h))
	h.Holds = false
	require.Len(t, untruths(h), 2)
}

func TestLogsTellOfAFaultOnceAndOfItsEndWhenItIsOver(t *testing.T) {
	line := func(at float64, begins bool, what string) Line {
		return Line{By: "edge 1", What: what, Server: Redis, At: sec(at), Begins: begins}
	}
	for name, test := range map[string]struct {
		outage Outage
		lines  []Line
		want   int
	}{
		"once":                  {outage(Redis, Away), []Line{line(2.2, true, "p1"), line(5.5, false, "p1")}, 0},
		"once a product":        {outage(Redis, Away), []Line{line(2.2, true, "p1"), line(2.2, true, "p2")}, 0},
		"twice":                 {outage(Redis, Away), []Line{line(2.2, true, "p1"), line(5.2, false, "p1"), line(5.3, true, "p1")}, 1},
		"flapping is one fault": {outage(Redis, Fitful), []Line{line(2.2, true, "p1"), line(3, false, "p1"), line(3.1, true, "p1"), line(3.2, true, "p1")}, 1},
		"answers again in between": {
			outage(Redis, Refuses), []Line{line(2.2, true, "p1"), line(4.5, false, "p1")}, 1,
		},
		"answered before":      {outage(Redis, Refuses), []Line{line(3, false, "p1")}, 0},
		"another edge's Redis": {outage(Redis, Refuses, "edge 2"), []Line{line(4.5, false, "p1")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := during(test.outage)
			h.Lines = test.lines
			require.Len(t, untruths(h), test.want, "%v", untruths(h))
		})
	}
}

func TestWhatHappensTwiceIsToldOfTwice(t *testing.T) {
	o := outage(Redis, Fitful)
	o.Times = 2
	h := during(o)
	for range 2 {
		h.Lines = append(h.Lines, Line{By: "edge 1", What: "Redis", At: sec(3), Begins: true})
	}
	require.Empty(t, untruths(h))
	h.Lines = append(h.Lines, h.Lines[0])
	require.Len(t, untruths(h), 1)
}

func TestAFinalStateNeverChanges(t *testing.T) {
	lost, soldOut := order.ReasonLost, order.Reason("sold_out")
	tell := func(at float64, edge, status int, state order.State, why order.Reason) Told {
		return Told{OrderID: id(4), Edge: edge, At: sec(at), End: sec(at + 1), Status: status, State: state, Reason: why}
	}
	for name, test := range map[string]struct {
		told []Told
		want int
	}{
		"the same again":                   {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(9, 1, 200, order.Rejected, soldOut)}, 0},
		"another reason":                   {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(9, 0, 200, order.Rejected, lost)}, 1},
		"another reason on another edge":   {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(1.1, 1, 200, order.Rejected, lost)}, 1},
		"queued again":                     {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(3, 1, 200, order.Queued, "")}, 1},
		"queued, asked before":             {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(1.5, 1, 200, order.Queued, "")}, 0},
		"unknown afterwards":               {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(3, 1, 404, "", "")}, 1},
		"cannot be read for now":           {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(3, 1, 503, "", "")}, 0},
		"many times, counted as one order": {[]Told{tell(1, 0, 200, order.Rejected, soldOut), tell(3, 0, 200, order.Rejected, lost), tell(5, 0, 200, order.Rejected, soldOut), tell(7, 0, 200, order.Rejected, lost)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			h.forget(4)
			h.Told = append(h.Told, test.told...)
			require.Len(t, untruths(h), test.want, "%v", untruths(h))
		})
	}
}

// Order 1 of a good sale is due at 10 s.
func TestAnOrderIsLate(t *testing.T) {
	asked := func(at float64) func(*History) {
		return func(h *History) {
			h.forget(1)
			h.Told = append(h.Told, Told{OrderID: id(1), At: sec(at), Status: 200, State: order.Queued})
			h.tell(1, 200, order.Created, "")
		}
	}
	stored := func(at float64) func(*History) {
		return func(h *History) { h.End.Rows[0].Reserved, h.End.Rows[0].Stored = sec(1), sec(at) }
	}
	away := func(s Server, from, until float64, programs ...string) []Outage {
		o := outage(s, Away, programs...)
		o.Begun, o.Broken, o.Healing, o.Healed = sec(from), sec(from), sec(until), sec(until)
		return []Outage{o}
	}
	for _, test := range []struct {
		name    string
		history func(*History)
		outages []Outage
		want    int
	}{
		{"queued before it is due", asked(9.9), nil, 0},
		{"queued afterwards", asked(10.1), nil, 1},
		{"stored before it is due", stored(9.9), nil, 0},
		{"stored afterwards", stored(10.1), nil, 1},
		{"stored afterwards, and nobody had asked", stored(31), away(Redis, 2, 5), 1},
		{"Redis is away when it is due", asked(10.1), away(Redis, 8, 20), 0},
		{"and it is queued for longer than that and the recovery", asked(22.1), away(Redis, 8, 20), 1},
		{"SQL is away when it is due", stored(20.5), away(Database, 8, 20), 0},
		{"it is due while Redis recovers", asked(11), away(Redis, 2, 9), 0},
		{"Redis was away long before", asked(10.1), away(Redis, 2, 5), 1},
		{"SQL is away right after Redis", asked(15), append(away(Redis, 8, 11), away(Database, 12, 20)...), 0},
		{"the broker is away", asked(10.1), away(Broker, 8, 20), 1},
		{"one edge does not reach Redis", asked(10.1), away(Redis, 8, 20, "edge 1"), 1},
		{"a backend is dead", asked(10.1), away(Program, 8, 20, "backend 1"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := good()
			h.Outages = test.outages
			test.history(h)
			v := Check(h)
			require.Equal(t, test.want, v.Count(Late), "%v", v.Violations)
			require.Len(t, v.Violations, test.want, "%v", v.Violations)
		})
	}
}

func TestRefusalsAfterQueuedAreCountedAndTheirReasonsJudged(t *testing.T) {
	h := good()
	h.forget(4)
	h.tell(4, 200, order.Rejected, "held")
	v := Check(h)
	require.Equal(t, map[order.Reason]int{"held": 1}, v.Refused)
	require.Len(t, untruths(h), 1)

	h = good()
	h.forget(4)
	h.tell(4, 200, order.Rejected, "sold_out")
	require.Empty(t, untruths(h))
	h.Plenty = true
	require.Len(t, untruths(h), 1)
}

func TestTheSlowestOrderIsNamed(t *testing.T) {
	h := good()
	for i, age := range []float64{3, 7, 5} {
		h.End.Rows[i].Reserved, h.End.Rows[i].Stored = sec(0), sec(age)
	}
	v := Check(h)
	require.Equal(t, fmt.Sprint(id(2), " 7s"), fmt.Sprint(v.Slowest, " ", v.Age))
}
