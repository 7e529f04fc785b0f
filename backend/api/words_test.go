package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is not there is named, with the way out; an option that an address does not
// know is refused wherever it is given.
func TestWords(t *testing.T) {
	s := newSite(t, "")
	const order = "/api/orders/01m8mcb8mmgstzccbmrw2zgrwy"
	require.Equal(t, http.StatusCreated, s.do(t, request{method: http.MethodPost, path: "/api/activities", body: draft(unchanged)}).Code)
	for _, tc := range []struct {
		r      request
		status int
		says   []string
	}{
		{request{method: http.MethodPost, path: order + "/paid", body: `{"payment_id":"p"}`}, 404, []string{"order 01m8mcb8mmgstzccbmrw2zgrwy is not stored: one is within moments"}},
		{request{method: http.MethodPost, path: order + "/cancel"}, 404, []string{"order 01m8mcb8mmgstzccbmrw2zgrwy is not stored"}},
		{request{method: http.MethodPost, path: "/api/refunds/nope/done"}, 404, []string{`payment \"nope\" was never reported`}},
		{request{path: "/api/activities?limit=x"}, 422, []string{"unknown query parameter", "query.limit"}},
		{request{path: "/api/activities/1001/reconcile?dryrun=true", method: http.MethodPost}, 422, []string{"query.dryrun"}},
		{request{path: "/api/refunds?limit=x"}, 422, []string{"query.limit"}},
		{request{path: "/api/activities/1001/stock", method: http.MethodPost, body: `{"add":1,"withdraw":1}`}, 422, []string{"only one", "body.add", "body.withdraw"}},
	} {
		out := s.do(t, tc.r)
		require.Equal(t, tc.status, out.Code, "%s: %s", tc.r.path, out.Body)
		for _, words := range tc.says {
			require.Contains(t, out.Body.String(), words, tc.r.path)
		}
	}
}
