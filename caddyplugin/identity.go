package caddyplugin

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

const (
	defaultIdentity = "http.auth.user.id"
	fromRequest     = "http.request."
	fromHeader      = fromRequest + "header."
	// fromCertificate is what the TLS client certificate says, the one part of a
	// request that the server itself can verify.
	fromCertificate = fromRequest + "tls.client."
)

// trusted are the beginnings of placeholders that only an authenticator or the
// server itself fills. Others may repeat what the client sent (vars and regexp
// captures often do), or name one user for everybody (system, env).
var trusted = []string{"http.auth.", "http.reverse_proxy.header.", fromCertificate}

// identity finds out who a request comes from.
type identity struct {
	placeholder string
	// header is set if the placeholder is that of a request header, which is then
	// read without the detour.
	header string
	// certificate is set if the placeholder is what the client certificate says, of
	// which nothing is believed unless the server has verified it, as it does in the
	// modes require_and_verify and verify_if_given only.
	certificate bool
	// query is set if the placeholder is of the request's address, so that its query
	// is read.
	query bool
}

// newIdentity takes a placeholder's name, with or without its braces.
func newIdentity(placeholder string) identity {
	placeholder = bare(placeholder)
	if placeholder == "" {
		placeholder = defaultIdentity
	}
	i := identity{
		placeholder: placeholder,
		certificate: strings.HasPrefix(placeholder, fromCertificate),
		query:       strings.HasPrefix(placeholder, fromRequest+"uri") || strings.HasPrefix(placeholder, fromRequest+"orig_uri"),
	}
	if name, ok := strings.CutPrefix(placeholder, fromHeader); ok {
		i.header = textproto.CanonicalMIMEHeaderKey(name)
	}
	return i
}

// bare takes the braces off a placeholder.
func bare(placeholder string) string {
	if inner, ok := strings.CutPrefix(placeholder, "{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}"); ok {
			return inner
		}
	}
	return placeholder
}

// check refuses a placeholder that cannot be one, and one that the client
// itself fills unless insecure says that this is meant.
func (i identity) check(insecure bool) error {
	if strings.ContainsAny(i.placeholder, "{} \t") {
		return fmt.Errorf("identity %q: not the name of one placeholder, such as %s", i.placeholder, defaultIdentity)
	}
	if insecure || slices.ContainsFunc(trusted, func(begin string) bool { return strings.HasPrefix(i.placeholder, begin) }) {
		return nil
	}
	return fmt.Errorf("identity %q may be what the client says of itself, so that anybody could buy in anybody's name; "+
		"name a placeholder that an authenticator sets (%s; http.reverse_proxy.header.Remote-User with forward_auth; %s…), "+
		"or turn insecure_client_identity on for development", i.placeholder, defaultIdentity, fromCertificate)
}

// of returns the user id, empty if there is none.
func (i identity) of(r *http.Request) string {
	if i.header != "" {
		values := r.Header[i.header]
		if len(values) == 1 {
			return values[0]
		}
		return "" // none, or two that contradict each other
	}
	if i.certificate && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return "" // a certificate that nobody has signed says what its maker likes
	}
	replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	user, _ := replacer.GetString(i.placeholder)
	return user
}
