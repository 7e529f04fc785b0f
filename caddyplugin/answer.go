package caddyplugin

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/seckill-edge/seckill/caddyplugin/gate"
	"github.com/seckill-edge/seckill/internal/order"
)

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// answer is a buffer that an answer is put together in.
type answer struct{ b []byte }

var answers = sync.Pool{New: func() any { return &answer{b: make([]byte, 0, 512)} }}

// writeQueued answers a purchase that was taken. Ids are of an alphabet that
// neither JSON nor a URL has to escape, and the prefix was checked for it.
func writeQueued(w http.ResponseWriter, prefix string, c gate.Click, d gate.Decision) {
	location := prefix + "/" + c.ProductID + "/orders/" + d.OrderID
	buffer := answers.Get().(*answer)
	defer answers.Put(buffer)
	b := buffer.b[:0]
	b = append(b, `{"code":0,"status":"queued","order_id":"`...)
	b = append(b, d.OrderID...)
	b = append(b, `","product_id":"`...)
	b = append(b, c.ProductID...)
	b = append(b, `","quantity":`...)
	b = strconv.AppendInt(b, int64(d.Quantity), 10)
	b = append(b, `,"status_url":"`...)
	b = append(b, location...)
	b = append(b, `","resolve_by":"`...)
	b = d.ResolveBy.UTC().AppendFormat(b, timeLayout)
	b = append(b, `"}`...)
	buffer.b = b

	values := [3]string{"application/json", "no-store", location}
	v := values[:]
	h := w.Header()
	h["Content-Type"] = v[0:1:1]
	h["Cache-Control"] = v[1:2:2]
	h["Location"] = v[2:3:3]
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(b)
}

// writeTicket answers with a ticket, whose alphabet needs no escape either.
func writeTicket(w http.ResponseWriter, ticket string, expires time.Time) {
	buffer := answers.Get().(*answer)
	defer answers.Put(buffer)
	b := buffer.b[:0]
	b = append(b, `{"code":0,"ticket":"`...)
	b = append(b, ticket...)
	b = append(b, `","expires":"`...)
	b = expires.UTC().AppendFormat(b, timeLayout)
	b = append(b, '"', '}')
	buffer.b = b

	values := [2]string{"application/json", "no-store"}
	v := values[:]
	h := w.Header()
	h["Content-Type"] = v[0:1:1]
	h["Cache-Control"] = v[1:2:2]
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b)
}

// writeFate answers with what became of an order.
func writeFate(w http.ResponseWriter, f gate.Fate) {
	buffer := answers.Get().(*answer)
	defer answers.Put(buffer)
	b := append(appendFate(buffer.b[:0], f), '\n')
	buffer.b = b

	values := [3]string{"application/json", "no-store"}
	v := values[:]
	h := w.Header()
	h["Content-Type"] = v[0:1:1]
	h["Cache-Control"] = v[1:2:2]
	if f.RetryAfter > 0 {
		v[2] = strconv.FormatInt(seconds(f.RetryAfter), 10)
		h["Retry-After"] = v[2:3:3]
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b)
}

// appendFate writes an order's fate as JSON. Ids, states and reasons are of an
// alphabet that JSON does not escape: reasons of a backend are checked for it.
func appendFate(b []byte, f gate.Fate) []byte {
	b = append(b, `{"order_id":"`...)
	b = append(b, f.OrderID...)
	b = append(b, `","status":"`...)
	b = append(b, f.State...)
	b = append(b, '"')
	if f.Reason != "" {
		b = append(b, `,"reason":"`...)
		b = append(b, f.Reason...)
		b = append(b, '"')
	}
	if f.Quantity > 0 {
		b = append(b, `,"quantity":`...)
		b = strconv.AppendInt(b, int64(f.Quantity), 10)
	}
	b = append(b, `,"final":`...)
	b = strconv.AppendBool(b, f.Final)
	if f.State == order.Queued && !f.ResolveBy.IsZero() {
		b = append(b, `,"resolve_by":"`...)
		b = f.ResolveBy.UTC().AppendFormat(b, timeLayout)
		b = append(b, '"')
	}
	if !f.PayBy.IsZero() {
		b = append(b, `,"pay_by":"`...)
		b = f.PayBy.UTC().AppendFormat(b, timeLayout)
		b = append(b, '"')
	}
	return append(b, '}')
}

// writeActivity answers with an activity. Everybody sees the same for a second,
// so a cache in front may carry the crowd that counts down.
func writeActivity(w http.ResponseWriter, v gate.View) {
	document := struct {
		ProductID  string `json:"product_id"`
		ActivityID string `json:"activity_id"`
		Title      string `json:"title"`
		Start      string `json:"start"`
		End        string `json:"end"`
		Now        string `json:"now"`
		State      string `json:"state"`
		Left       bool   `json:"left"`
		Limit      int    `json:"limit"`
		PayWindow  int64  `json:"pay_window_seconds"`
	}{
		ProductID: v.ProductID, ActivityID: v.ID, Title: v.Title,
		Start: v.Start.UTC().Format(timeLayout),
		End:   v.End.UTC().Format(timeLayout),
		Now:   v.Now.UTC().Format(timeLayout),
		State: string(v.Sale(v.Fresh)), Left: v.Available > 0 && !v.Damaged, Limit: v.Limit, PayWindow: int64(v.PayWindow / time.Second),
	}
	w.Header().Set("Cache-Control", "public, max-age=1")
	writeJSON(w, document)
}

// writeJSON sends a document of strings, numbers and truth values, which cannot
// fail to encode. A client that is gone is nobody's error.
func writeJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}
