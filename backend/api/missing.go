package api

import "net/http"

// explained answers what no pattern of mux takes, the wrong method and the wrong
// path, as a problem like all others.
func explained(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := &statusOnly{header: http.Header{}, status: http.StatusNotFound}
		handler.ServeHTTP(refused, r)
		if allow := refused.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			writeProblem(w, refused.status, "this address takes "+allow)
			return
		}
		notFound(w)
	})
}

func notFound(w http.ResponseWriter) {
	writeProblem(w, http.StatusNotFound, "nothing is at this address; /api/openapi.json describes what there is")
}

// statusOnly keeps what was answered, without the body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
