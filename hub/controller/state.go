package controller

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// cacheState is what the controller remembers of one CacheCluster between two
// reconciles. All of it may be lost, as at a restart; the comment of each field
// states what the loss costs.
type cacheState struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// LastWrite is the resourceVersion of the last write to the CacheCluster, until
	// the cache shows it. A reconcile of an older version is skipped. Loss: one write
	// that the API server refuses with a conflict.
	LastWrite string `json:"lastWrite,omitempty"`
	// StatusWritten is the time of the last status write. A status that carries
	// nothing but progress waits for a pause after it. Loss: one more status write.
	StatusWritten time.Time `json:"statusWritten,omitzero"`
	// Progressing reports whether the last status had members that progress. The pause
	// grows with the number of such CacheClusters. Loss: a shorter pause for the others.
	Progressing bool `json:"progressing"`
	// Deletions maps the MemberCaches whose deletion the API server accepted to the
	// resourceVersion that the cache showed then. Loss: one more delete request each.
	Deletions map[types.UID]string `json:"deletions,omitempty"`
}

// states holds the record of each CacheCluster by UID. One worker reconciles a
// CacheCluster at a time; the lock is for event handlers and DebugHandler.
type states struct {
	mu          sync.Mutex
	records     map[types.UID]*cacheState
	progressing int
}

func newStates() *states { return &states{records: map[types.UID]*cacheState{}} }

// record returns the record of a CacheCluster. The caller holds the lock.
func (s *states) record(cc metav1.Object) *cacheState {
	state, ok := s.records[cc.GetUID()]
	if !ok {
		state = &cacheState{Namespace: cc.GetNamespace(), Name: cc.GetName(), UID: cc.GetUID()}
		s.records[cc.GetUID()] = state
	}
	return state
}

// forget drops the record of a CacheCluster that was deleted.
func (s *states) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.records[uid]; state != nil && state.Progressing {
		s.progressing--
	}
	delete(s.records, uid)
}

// wrote records a write, with the CacheCluster as the API server returned it.
func (s *states) wrote(cc metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(cc).LastWrite = cc.GetResourceVersion()
}

// wroteStatus records a write of the status.
func (s *states) wroteStatus(cc *v1alpha1.CacheCluster, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.record(cc)
	state.LastWrite, state.StatusWritten = cc.GetResourceVersion(), now
	if is := progressing(&cc.Status); is != state.Progressing {
		state.Progressing = is
		if is {
			s.progressing++
		} else {
			s.progressing--
		}
	}
}

// isStale reports whether a CacheCluster from the cache is older than the last write
// to it.
func (s *states) isStale(cc metav1.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.records[cc.GetUID()]
	if state == nil || state.LastWrite == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cc.GetResourceVersion(), state.LastWrite)
	if err == nil && order < 0 {
		return true
	}
	state.LastWrite = ""
	return false
}

// statusPause returns the time of the last status write, and how many CacheClusters
// progress.
func (s *states) statusPause(cc metav1.Object) (written time.Time, progressing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.records[cc.GetUID()]; state != nil {
		written = state.StatusWritten
	}
	return written, s.progressing
}

// pendingDeletions returns the MemberCaches to be removed whose deletion the API server
// has not accepted yet. It forgets those that are no longer to be removed. While the cache shows a MemberCache as it was, each event would otherwise
// repeat the request.
func (s *states) pendingDeletions(cc metav1.Object, remove []*v1alpha1.MemberCache) []*v1alpha1.MemberCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.records[cc.GetUID()]
	if state == nil || len(state.Deletions) == 0 {
		return remove
	}
	accepted := map[types.UID]string{}
	var pending []*v1alpha1.MemberCache
	for _, mc := range remove {
		if version, ok := state.Deletions[mc.UID]; ok && version == mc.ResourceVersion {
			accepted[mc.UID] = version
		} else {
			pending = append(pending, mc)
		}
	}
	state.Deletions = accepted
	return pending
}

// deleted records that the API server accepted the deletion of a MemberCache.
func (s *states) deleted(cc metav1.Object, mc *v1alpha1.MemberCache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.record(cc)
	if state.Deletions == nil {
		state.Deletions = map[types.UID]string{}
	}
	state.Deletions[mc.UID] = mc.ResourceVersion
}

// DebugHandler returns a handler that prints the records as JSON, sorted by namespace
// and name. The query parameters namespace and name select.
func (r *Reconciler) DebugHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		encoded, err := r.states.encode(query.Get("namespace"), query.Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encoded)
	})
}

// encode returns the selected records as JSON; an empty namespace or name selects all.
func (s *states) encode(namespace, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	selected := []*cacheState{}
	for _, state := range s.records {
		if (namespace == "" || state.Namespace == namespace) && (name == "" || state.Name == name) {
			selected = append(selected, state)
		}
	}
	slices.SortFunc(selected, func(a, b *cacheState) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return json.MarshalIndent(selected, "", "  ")
}
