package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every refusal is a problem, also those of addresses that are none.
func TestMissingIsAProblem(t *testing.T) {
	s := newSite(t, "")
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodGet, "/nothing", 404, ""},
		{http.MethodGet, "/console", 404, ""},
		{http.MethodGet, "/console.js/x", 404, ""},
		{http.MethodGet, "/api/", 404, ""},
		{http.MethodGet, "/api/nothing", 404, ""},
		{http.MethodPost, "/api/activities/1/nothing", 404, ""},
		{http.MethodDelete, "/api/activities", 405, "GET, HEAD, POST"},
		{http.MethodPost, "/", 405, "GET, HEAD"},
		{http.MethodPost, "/metrics", 405, "GET, HEAD"},
		{http.MethodPost, "/healthz", 405, "GET, HEAD"},
	} {
		out := s.do(t, request{method: tc.method, path: tc.path})
		require.Equal(t, tc.status, out.Code, tc.path)
		require.Equal(t, "application/problem+json", out.Header().Get("Content-Type"), tc.path)
		require.Equal(t, tc.allow, out.Header().Get("Allow"), tc.path)
		var problem struct {
			Status int
			Detail string
		}
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &problem))
		require.Equal(t, tc.status, problem.Status)
		require.NotEmpty(t, problem.Detail)
	}
	for _, path := range []string{"/", "/console.js", "/icon.svg", "/healthz", "/metrics"} {
		require.Equal(t, http.StatusOK, s.do(t, request{path: path}).Code, path)
	}
}

// The description says how one is let in, and what happens if one is not.
func TestDescriptionOfTheToken(t *testing.T) {
	for token, ways := range map[string]int{"": 2, "secret": 1} {
		s := newSite(t, token)
		out := s.do(t, request{path: "/api/openapi.json", header: map[string]string{"Authorization": "Bearer " + token}})
		require.Equal(t, http.StatusOK, out.Code)
		var d struct {
			Components struct {
				SecuritySchemes map[string]struct{ Type, Scheme string }
			}
			Security []map[string][]string
			Paths    map[string]map[string]struct {
				Responses map[string]any
			}
		}
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &d))
		require.Equal(t, "http", d.Components.SecuritySchemes["bearer"].Type)
		require.Len(t, d.Security, ways)
		require.NotEmpty(t, d.Paths)
		for path, methods := range d.Paths {
			for method, operation := range methods {
				require.Contains(t, operation.Responses, "401", "%s %s", method, path)
				require.Contains(t, operation.Responses, "403", "%s %s", method, path)
			}
		}
	}
}
