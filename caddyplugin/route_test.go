package caddyplugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoute(t *testing.T) {
	long := strings.Repeat("p", 64)
	for path, want := range map[string]struct {
		what           call
		product, order string
	}{
		"/":                            {notOurs, "", ""},
		"/seckil":                      {notOurs, "", ""},
		"/seckills":                    {notOurs, "", ""},
		"/seckills/1001":               {notOurs, "", ""},
		"/SECKILL/1001":                {notOurs, "", ""},
		"//seckill/1001":               {notOurs, "", ""},
		"/shop/seckill/1001":           {notOurs, "", ""},
		"/seckill":                     {unknownPath, "", ""},
		"/seckill/":                    {unknownPath, "", ""},
		"/seckill//":                   {badProduct, "", ""},
		"/seckill/1001":                {activityCall, "1001", ""},
		"/seckill/a-Z_9":               {activityCall, "a-Z_9", ""},
		"/seckill/" + long:             {activityCall, long, ""},
		"/seckill/" + long + "p":       {badProduct, "", ""},
		"/seckill/10 01":               {badProduct, "", ""},
		"/seckill/{1001}":              {badProduct, "", ""},
		"/seckill/1001:2":              {badProduct, "", ""},
		"/seckill/..":                  {badProduct, "", ""},
		"/seckill/\x00":                {badProduct, "", ""},
		"/seckill/é":                   {badProduct, "", ""},
		"/seckill/1001/":               {unknownPath, "", ""},
		"/seckill/1001/orders":         {unknownPath, "", ""},
		"/seckill/1001/orders/":        {unknownPath, "", ""},
		"/seckill/1001/orders/abc":     {orderCall, "1001", "abc"},
		"/seckill/1001/orders/abc/":    {unknownPath, "", ""},
		"/seckill/1001/orders/abc/pay": {unknownPath, "", ""},
		"/seckill/1001/Orders/abc":     {unknownPath, "", ""},
		"/seckill/1001//orders/abc":    {unknownPath, "", ""},
		"/seckill/10 01/orders/abc":    {badProduct, "", ""},
	} {
		what, product, orderID := route("/seckill", path)
		if want.what == unknownPath || want.what == badProduct {
			product, orderID = "", "" // nobody looks at them
		}
		require.Equal(t, want.what, what, "%q", path)
		require.Equal(t, want.product, product, "%q", path)
		require.Equal(t, want.order, orderID, "%q", path)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { route("/seckill", "/seckill/1001/orders/abc") }))
}

func TestCheckPrefix(t *testing.T) {
	for _, good := range []string{"/seckill", "/api/v1.2/sale", "/~a_b-c", "/0"} {
		require.NoError(t, checkPrefix(good), "%q", good)
	}
	for _, bad := range []string{"", "/", "seckill", "/seckill/", "//seckill", "/a//b", "/a/../b", "/.", "/a b", `/a"b`, "/a%20b", "/é", "/{x}", "/a?b"} {
		require.ErrorIs(t, checkPrefix(bad), errPrefix, "%q", bad)
	}
}
