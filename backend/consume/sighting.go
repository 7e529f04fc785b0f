package consume

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seckill-edge/seckill/internal/order"
	"github.com/seckill-edge/seckill/lua"
)

// sighting says since when the stock of an activity has been seen as proven without
// interruption: by one server, under one epoch. Whatever may lose orders ends it: a
// server that restarts or takes over has another run id, and a rebuild or an
// activity that is made again has a higher epoch.
type sighting struct {
	activity, run string
	epoch         int64
	since         time.Time // by Redis's clock
}

// judges says whether o was reserved while this was so, if it was reserved at all:
// margin after its beginning by both clocks that o has been stamped with, and not
// later than now. A replica that takes over may stand beside a primary that still
// sells, the edge's clock may be fast, and a time that is still to come is told by a
// clock that has gone back since.
func (s sighting) judges(o *order.Order, now time.Time, margin time.Duration) bool {
	made, valid := order.IDTime(o.ID)
	from, until := s.since.Add(margin), now.Add(margin)
	return valid && o.ActivityID == s.activity &&
		made.After(from) && o.ReservedAt.After(from) && made.Before(until) && o.ReservedAt.Before(until)
}

// sightings are those of all products. It is safe for concurrent use.
type sightings struct {
	redis redis.Scripter
	mu    sync.Mutex
	of    map[string]seen
}

// seen is a sighting with what else tells of a loss.
type seen struct {
	sighting
	users int64     // buyers; a record is never taken away from a proven stock
	at    time.Time // of the last look, by this machine's clock
}

func newSightings(c redis.Scripter) *sightings { return &sightings{redis: c, of: map[string]seen{}} }

// look looks at the product's activity now. False if its stock is not proven, or if
// its server does not tell its run id: then nobody can tell whether it has restarted.
func (s *sightings) look(ctx context.Context, product string) (now time.Time, as sighting, proven bool, err error) {
	found, there, err := lua.Audit(ctx, s.redis, product)
	if err != nil {
		return time.Time{}, sighting{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !there || !found.Proven() || found.ServerRun == "" {
		delete(s.of, product)
		return found.Now, sighting{}, false, nil
	}
	before := s.of[product]
	as = sighting{activity: found.ID, run: found.RunID, epoch: found.Epoch, since: before.since}
	if as != before.sighting || found.Users < before.users {
		as.since = found.Now
	}
	s.of[product] = seen{sighting: as, users: found.Users, at: time.Now()}
	return found.Now, as, true, nil
}

// fresh says that the product was looked at within the last age.
func (s *sightings) fresh(product string, age time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, there := s.of[product]
	return there && time.Since(before.at) < age
}
