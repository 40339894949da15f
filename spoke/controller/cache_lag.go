package controller

import "time"

// An object that was created and deleted while a watch was broken is in no list and no
// event, so the cache never shows it. Until the cache shows what was applied, the
// MemberCache is reconciled after firstLag. Each later interval is as long as the cache has
// lagged, up to longestLag.
const (
	firstLag   = 2 * time.Second
	longestLag = 30 * time.Second
)

// cacheLag is since when the cache does not show children that were applied; its zero
// value is a cache that shows all.
type cacheLag struct{ since time.Time }

// update notes whether the cache lags, and returns when to reconcile again, 0 if it does
// not lag.
func (l *cacheLag) update(lags bool, now time.Time) time.Duration {
	if !lags {
		l.since = time.Time{}
		return 0
	}
	if l.since.IsZero() || now.Before(l.since) {
		l.since = now
	}
	return min(max(now.Sub(l.since), firstLag), longestLag)
}
