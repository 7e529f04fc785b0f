package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

func TestIsTransient(t *testing.T) {
	my := func(number uint16) error { return &mysqldriver.MySQLError{Number: number} }
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{ErrNotFound, false},
		{ErrExists, false},
		{ErrState, false},
		{ErrSchema, true},
		{context.Canceled, true},
		{context.DeadlineExceeded, true},
		{driver.ErrBadConn, true},
		{mysqldriver.ErrInvalidConn, true},
		{sql.ErrConnDone, true},
		{io.ErrUnexpectedEOF, true},
		{errors.New("never seen"), true},
		{my(1021), true}, // disk full
		{my(1040), true}, // too many connections
		{my(1045), true}, // access denied
		{my(1053), true}, // shutting down
		{my(1114), true}, // table full
		{my(1146), true}, // no such table
		{my(1205), true}, // lock wait
		{my(1213), true}, // deadlock
		{my(1290), true}, // read only
		{my(1062), false},
		{my(1153), false},
		{my(1264), false},
		{my(1366), false},
		{my(1406), false},
		{my(3819), false},
		{my(4025), false},
		{mysqldriver.ErrPktTooLarge, false},
	} {
		require.Equal(t, tc.want, IsTransient(tc.err), "%v", tc.err)
		if tc.err != nil {
			require.Equal(t, tc.want, IsTransient(fmt.Errorf("doing: %w", tc.err)), "%v", tc.err)
		}
	}
}
