package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An object that came and went while a watch was broken is in no list and no event: the
// cache never knew of it. So until the cache shows what was applied, it is looked for
// again, after firstLag and then after as long again as it has lacked, up to lastLag.
const (
	firstLag = 2 * time.Second
	lastLag  = 30 * time.Second
)

// lags notes since when the cache lacks children of a MemberCache. Losing it costs one
// look.
type lags struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// look gives after how long to look again, 0 where nothing lacks.
func (l *lags) look(key types.NamespacedName, lacking bool, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !lacking {
		delete(l.since, key)
		return 0
	}
	since, known := l.since[key]
	if !known || now.Before(since) {
		if l.since == nil {
			l.since = map[types.NamespacedName]time.Time{}
		}
		l.since[key], since = now, now
	}
	return min(max(now.Sub(since), firstLag), lastLag)
}

func (l *lags) forget(key types.NamespacedName) { l.look(key, false, time.Time{}) }
