package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// The clock that pay windows go by is no hour off when those on the wall are put back,
// whatever time zone the server keeps.
func TestClockInEveryTimeZone(t *testing.T) {
	onEachServer(t, func(t *testing.T, _ *servicetest.MariaDB, address string) {
		s := open(t, address)
		const putBack = 1_761_440_400 // in Europe 3:00 became 2:00
		require.NoError(t, s.db.Connection(func(db *gorm.DB) error {
			for _, statement := range []string{
				"INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
				"SET @zone = LAST_INSERT_ID()",
				"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Summer', @zone)",
				"INSERT INTO mysql.time_zone_transition_type VALUES (@zone, 0, 7200, 1, 'SUM'), (@zone, 1, 3600, 0, 'WIN')",
				"INSERT INTO mysql.time_zone_transition VALUES (@zone, 1743296400, 0), (@zone, 1761440400, 1)",
			} {
				if err := db.Exec(statement).Error; err != nil {
					return err
				}
			}
			for _, zone := range []string{"SYSTEM", "+00:00", "-08:00", "+05:30", "Test/Summer"} {
				for _, at := range []time.Time{time.Unix(putBack-1800, 5e6), time.Unix(putBack, 0), time.Unix(putBack+1800, 999e6), time.Unix(putBack+7200, 0)} {
					require.NoError(t, db.Exec("SET time_zone = ?", zone).Error)
					require.NoError(t, db.Exec("SET timestamp = ?", float64(at.UnixMilli())/1000).Error)
					var now int64
					require.NoError(t, db.Raw("SELECT "+s.dialect.clock()).Scan(&now).Error)
					require.Equal(t, at.UnixMilli(), now, "%s in %s", at.UTC(), zone)
				}
			}
			return db.Exec("SET timestamp = DEFAULT, time_zone = DEFAULT").Error
		}))
	})
}
