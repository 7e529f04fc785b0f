package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/seckill-edge/seckill/internal/order"
)

// chunk bounds the values of one IN list and the rows of one INSERT: below the
// 32766 variables of SQLite, and below the 1000 from which MariaDB turns a list
// into a temporary table.
const chunk = 500

// Order returns one stored order, or ErrNotFound.
func (s *Store) Order(ctx context.Context, id string) (Order, error) {
	found, err := s.Orders(ctx, []string{id})
	if err != nil {
		return Order{}, err
	}
	o, ok := found[id]
	if !ok {
		return Order{}, fmt.Errorf("reading order %q: %w", id, ErrNotFound)
	}
	return o, nil
}

// Orders returns those of the orders that are stored, by id.
func (s *Store) Orders(ctx context.Context, ids []string) (map[string]Order, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	valid := make([]string, 0, len(ids))
	for _, id := range ids {
		if order.ValidID(id) {
			valid = append(valid, id)
		}
	}
	rows, err := s.rowsByID(db, valid)
	if err != nil {
		return nil, fmt.Errorf("reading %d orders: %w", len(ids), err)
	}
	found := make(map[string]Order, len(rows))
	for id, row := range rows {
		found[id] = row.order()
	}
	return found, nil
}

func (s *Store) rowsByID(db *gorm.DB, ids []string) (map[string]orderRow, error) {
	found := make(map[string]orderRow)
	for part := range slices.Chunk(ids, chunk) {
		var rows []orderRow
		err := db.Table(s.dialect.ordersBy(indexPrimary)).Where("id IN ?", part).Find(&rows).Error
		if err != nil {
			return nil, err
		}
		for i := range rows {
			found[rows[i].ID] = rows[i]
		}
	}
	return found, nil
}

// Units counts the units of an activity's orders in one state.
func (s *Store) Units(ctx context.Context, activity string, state order.State) (units int64, err error) {
	db, cancel := s.session(ctx)
	defer cancel()
	err = db.Model(&orderRow{}).Select("COALESCE(SUM(quantity), 0)").
		Where("activity_id = ? AND state = ?", activity, string(state)).Scan(&units).Error
	if err != nil {
		return 0, fmt.Errorf("counting the %s units of activity %q: %w", state, activity, err)
	}
	return units, nil
}

// Totals counts the orders of an activity and their units by state, in one
// consistent read. States without orders are absent.
func (s *Store) Totals(ctx context.Context, activity string) (map[order.State]Total, error) {
	db, cancel := s.session(ctx)
	defer cancel()
	var rows []struct {
		State  string
		Orders int64
		Units  int64
	}
	err := db.Model(&orderRow{}).Select("state, COUNT(*) AS orders, SUM(quantity) AS units").
		Where("activity_id = ?", activity).Group("state").Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("counting the orders of activity %q: %w", activity, err)
	}
	totals := make(map[order.State]Total, len(rows))
	for _, r := range rows {
		totals[order.State(r.State)] = Total{Orders: r.Orders, Units: r.Units}
	}
	return totals, nil
}
