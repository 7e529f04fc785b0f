package caddyplugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/order"
)

// goodBodies maps what is accepted to the quantity it asks for; badBodies are
// 400. The end to end test sends all of them to a real edge as well.
var (
	goodBodies = map[string]int{
		``:                               1,
		`{"quantity":1}`:                 1,
		`{"quantity":2}`:                 2,
		`{"quantity":999}`:               999,
		`{ "quantity" : 10 }`:            10,
		"\r\n{\t\"quantity\"\n:\r7 } \n": 7,
	}
	badBodies = []string{
		` `, `{}`, `[]`, `null`, `2`, `"2"`, `true`, `{`, `}`, `{"quantity"`, `{"quantity":`, `{"quantity":1`,
		`{"quantity":}`, `{"quantity":null}`, `{"quantity":true}`, `{"quantity":[1]}`, `{"quantity":{}}`,
		`{"quantity":0}`, `{"quantity":-1}`, `{"quantity":-0}`, `{"quantity":+1}`, `{"quantity":1000}`,
		`{"quantity":99999999999999999999999999}`, `{"quantity":18446744073709551617}`,
		`{"quantity":01}`, `{"quantity":1.0}`, `{"quantity":1.5}`, `{"quantity":.5}`, `{"quantity":1e1}`, `{"quantity":1E0}`,
		`{"quantity":"1"}`, `{"quantity":'1'}`, `{"quantity":0x1}`, `{"quantity":1_0}`, `{"quantity":NaN}`, `{"quantity":Infinity}`,
		`{"quantity":1,}`, `{,"quantity":1}`, `{"quantity":1,"quantity":1}`, `{"quantity":1,"quantity":2}`,
		`{"quantity":1,"user":"bob"}`, `{"user":"bob","quantity":1}`, `{"Quantity":1}`, `{"QUANTITY":1}`, `{"qty":1}`,
		`{"quant\u0069ty":1}`, `{quantity:1}`, `{'quantity':1}`, `{"quantity" 1}`, `{"quantity"=1}`,
		`{"quantity":1}{"quantity":1}`, `{"quantity":1} x`, `{"quantity":1}}`, "{\"quantity\":1}\x00", `[{"quantity":1}]`,
		`{"quantity":1 1}`, `{"quantity": 1 /* one */}`, `// one` + "\n" + `{"quantity":1}`,
		"\ufeff{\"quantity\":1}", "{\"quantity\":\u00a01}", "{\"quantity\":\u0661}", "{\"quantity\":\uff11}", "\xff\xfe{\"quantity\":1}", "{\"quantity\xff\":1}",
		"{\"quantity\":1}\xff", `quantity=1`, `<quantity>1</quantity>`, strings.Repeat(" ", 100), strings.Repeat("[", 4000),
	}
)

func TestParseQuantity(t *testing.T) {
	for body, want := range goodBodies {
		if body == "" {
			continue // no body at all is readQuantity's
		}
		got, ok := parseQuantity([]byte(body))
		require.True(t, ok, "%q", body)
		require.Equal(t, want, got, "%q", body)
	}
	for _, body := range badBodies {
		_, ok := parseQuantity([]byte(body))
		require.False(t, ok, "%q", body)
	}
	body := []byte(` {"quantity": 17} `)
	require.Zero(t, testing.AllocsPerRun(100, func() { parseQuantity(body) }))
}

// FuzzParseQuantity compares with encoding/json: what is accepted means the same
// there, and what is refused is refused there, or is spelt in a way that only a
// lenient decoder takes.
func FuzzParseQuantity(f *testing.F) {
	for body := range goodBodies {
		f.Add([]byte(body))
	}
	for _, body := range badBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parseQuantity(body)
		want, wantOK := quantityByJSON(body)
		if ok != wantOK || ok && got != want {
			t.Fatalf("%q: (%d, %v), encoding/json says (%d, %v)", body, got, ok, want, wantOK)
		}
	})
}

// quantityByJSON is parseQuantity by way of a general decoder.
func quantityByJSON(body []byte) (int, bool) {
	if !json.Valid(body) || bytes.ContainsRune(body, '\\') {
		return 0, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var tokens []json.Token
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, false
		}
		tokens = append(tokens, token)
	}
	if len(tokens) != 4 || tokens[0] != json.Delim('{') || tokens[1] != "quantity" || tokens[3] != json.Delim('}') {
		return 0, false
	}
	literal, isNumber := tokens[2].(json.Number)
	n, err := strconv.Atoi(string(literal))
	if !isNumber || err != nil || n < 1 || n > order.MaxQuantity || strconv.Itoa(n) != string(literal) {
		return 0, false
	}
	return n, true
}

func TestReadQuantity(t *testing.T) {
	spaces := func(n int) string { return `{"quantity":3}` + strings.Repeat(" ", n-len(`{"quantity":3}`)) }
	for name, tc := range map[string]struct {
		body   io.Reader
		length int64
		want   int
		ok     bool
		err    error
	}{
		"no body":                     {http.NoBody, 0, 1, true, nil},
		"length 0 is not read":        {iotest.ErrReader(io.ErrClosedPipe), 0, 1, true, nil},
		"chunked and empty":           {strings.NewReader(""), -1, 1, true, nil},
		"chunked":                     {strings.NewReader(`{"quantity":3}`), -1, 3, true, nil},
		"byte by byte":                {iotest.OneByteReader(strings.NewReader(`{"quantity":3}`)), -1, 3, true, nil},
		"data together with EOF":      {iotest.DataErrReader(strings.NewReader(`{"quantity":3}`)), -1, 3, true, nil},
		"as long as allowed":          {strings.NewReader(spaces(maxBody)), maxBody, 3, true, nil},
		"a byte more, said before":    {strings.NewReader(spaces(maxBody + 1)), maxBody + 1, 0, false, errBodyTooLarge},
		"a byte more, found out":      {strings.NewReader(spaces(maxBody + 1)), -1, 0, false, errBodyTooLarge},
		"much more, found out":        {iotest.OneByteReader(strings.NewReader(spaces(3 * maxBody))), -1, 0, false, errBodyTooLarge},
		"a smaller bound of a server": {http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader(spaces(200))), 100), -1, 0, false, errBodyTooLarge},
		"cut short":                   {iotest.TimeoutReader(strings.NewReader(`{"quantity":3}`)), -1, 0, false, iotest.ErrTimeout},
		"cut short, but complete":     {io.MultiReader(strings.NewReader(`{"quantity":3}`), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, 0, false, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", tc.body)
			r.ContentLength = tc.length
			got, ok, err := readQuantity(httptest.NewRecorder(), r)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, got)
		})
	}
}
