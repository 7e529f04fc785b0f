package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seckill-edge/seckill/backend/api"
	"github.com/seckill-edge/seckill/backend/dead"
)

// reasonWidth and ordersNamed keep a line of the list short.
const (
	reasonWidth = 70
	ordersNamed = 2
)

func (a *app) printDeadList(l api.DeadLetters, now time.Time) error {
	if a.json {
		return a.printJSON(l)
	}
	if l.Total == 0 {
		fmt.Fprintln(a.stdout, "no dead letters")
		return nil
	}
	err := a.columns(func(w io.Writer) {
		fmt.Fprintln(w, "ID\tAGE\tATTEMPT\tPRODUCT\tORDERS\tREASON")
		for _, d := range l.Letters {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", d.ID, age(d.Since, now), d.Attempt, orDash(d.ProductID), ordersOf(d), cut(d.Reason))
		}
	})
	if more := l.Total - len(l.Letters); err == nil && more > 0 {
		fmt.Fprintf(a.stdout, "and %d more; --limit lists up to %d\n", more, maxListed)
	}
	return err
}

// ordersOf names the first orders of a letter and counts the rest.
func ordersOf(d api.DeadLetter) string {
	if d.Unreadable != "" {
		return "unreadable"
	}
	var names []string
	for _, o := range d.Orders {
		names = append(names, o.ID)
	}
	for _, b := range d.Bad {
		names = append(names, "bad:"+orDash(b.OrderID))
	}
	if more := len(names) - ordersNamed; more > 0 {
		names = append(names[:ordersNamed], fmt.Sprintf("+%d", more))
	}
	return strings.Join(names, " ")
}

func (a *app) printDeadShown(l api.DeadLetters, now time.Time) error {
	if a.json {
		return a.printJSON(l)
	}
	for i, d := range l.Letters {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := a.columns(func(w io.Writer) { writeDead(w, d, now) }); err != nil {
			return err
		}
	}
	return nil
}

func writeDead(w io.Writer, d api.DeadLetter, now time.Time) {
	fmt.Fprintf(w, "id\t%s\nreason\t%s\nattempt\t%d\nage\t%s\n", d.ID, orDash(d.Reason), d.Attempt, age(d.Since, now))
	if d.Unreadable != "" {
		fmt.Fprintf(w, "unreadable\t%s\n", d.Unreadable)
	} else {
		fmt.Fprintf(w, "product\t%s\nactivity\t%s\n", d.ProductID, d.ActivityID)
	}
	for _, o := range d.Orders {
		fmt.Fprintf(w, "order\t%s of user %s, %d units, claim %d, reserved %s\n", o.ID, dead.Escape(o.UserID), o.Quantity, o.Claim, o.ReservedAt.Format(time.RFC3339))
		writeDeadFate(w, o.DeadFate)
	}
	for _, b := range d.Bad {
		fmt.Fprintf(w, "bad entry\t%s\n\t%s\n", b.Raw, b.Error)
		writeDeadFate(w, b.DeadFate)
	}
	if d.IfReplayed != "" {
		fmt.Fprintf(w, "if replayed\t%s\n", d.IfReplayed)
	}
	if d.StoresAway != "" {
		fmt.Fprintf(w, "if replayed\tunknown: %s\n", d.StoresAway)
	}
	for _, k := range slices.Sorted(maps.Keys(d.Headers)) {
		fmt.Fprintf(w, "header\t%s: %s\n", k, d.Headers[k])
	}
	for line := range strings.SplitSeq(d.Body, `\n`) {
		fmt.Fprintf(w, "body\t%s\n", line)
	}
}

func writeDeadFate(w io.Writer, f api.DeadFate) {
	if f.IfReplayed == "" {
		return
	}
	stored := "no row"
	if f.Stored != "" {
		stored = strings.TrimSpace(f.Stored + " " + f.Because)
	}
	fmt.Fprintf(w, "\tSQL: %s, Redis: %s; if replayed: %s\n", stored, orDash(f.InRedis), f.IfReplayed)
}

func (a *app) printDeadDone(d api.DeadDone, done string) error {
	if a.json {
		return a.printJSON(d)
	}
	fmt.Fprintf(a.stdout, "%s %s with %s\n", done, count(d.Letters, "letter"), count(d.Orders, "readable order"))
	if d.Rejected > 0 {
		fmt.Fprintf(a.stdout, "%d of the orders hold no unit any more and end as rejected\n", d.Rejected)
	}
	if d.Kept > 0 {
		fmt.Fprintf(a.stdout, "%s kept: no order can be read, so a replay would come straight back; drop what nobody needs\n", count(d.Kept, "letter"))
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func age(since *time.Time, now time.Time) string {
	if since == nil {
		return "-"
	}
	return now.Sub(*since).Round(time.Second).String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= reasonWidth {
		return text
	}
	return string(runes[:reasonWidth-1]) + "…"
}
