package fault

import (
	"context"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	defaultEvery = time.Second
	minEvery     = 10 * time.Millisecond
)

// fight sets a field again and again.
type fight struct{}

// fightTask is what its background process reads.
type fightTask struct {
	Kubeconfig string        `json:"kubeconfig"`
	Member     string        `json:"member"`
	Manager    string        `json:"manager"`
	Object     *object       `json:"object"`
	Every      time.Duration `json:"every"`
	// Until is when it ends; zero is never.
	Until time.Time `json:"until,omitzero"`
}

func (fight) prepare(ctx context.Context, i *Injector, f *Fault) error {
	r := &f.Request
	if r.Every == 0 {
		r.Every = defaultEvery
	}
	if r.Every < minEvery {
		return badInput("--every %s: use %s or more", r.Every, minEvery)
	}
	if r.For < 0 {
		return badInput("--for %s: use 0 (until it is undone) or more", r.For)
	}
	if err := i.findField(ctx, f); err != nil {
		return err
	}
	f.What += fmt.Sprintf(", every %s", r.Every)
	if r.For > 0 {
		f.What += fmt.Sprintf(" for %s", r.For)
	}
	return nil
}

func (fight) do(ctx context.Context, i *Injector, f *Fault) error {
	t := fightTask{Kubeconfig: i.Lab.Kubeconfig(), Member: f.Request.Member, Manager: f.Request.Manager, Object: f.Object, Every: f.Request.Every}
	if f.Request.For > 0 {
		t.Until = time.Now().Add(f.Request.For)
	}
	// The first blow by this process, which can say what is wrong with it.
	if err := (drift{}).do(ctx, i, f); err != nil {
		return err
	}
	_, err := i.start(f.ID, task{Fight: &t})
	return err
}

func (fight) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	if err := i.stop(ctx, f.ID); err != nil {
		return "", err
	}
	return drift{}.undo(ctx, i, f)
}

// run fights until its end. A member that is away is no reason to give up.
func (t *fightTask) run(ctx context.Context) error {
	if !t.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.Until)
		defer cancel()
	}
	member, err := newClient(t.Kubeconfig, t.Member)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(t.Every)
	defer ticker.Stop()
	blows, last := 0, ""
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintf(os.Stderr, "%d times\n", blows)
			return nil
		case <-ticker.C:
		}
		changed, err := t.Object.change(ctx, member, t.Manager)
		if changed {
			blows++
		}
		// A deleted child comes back; the same complaint each time helps nobody.
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && err.Error() != last {
			last = err.Error()
			fmt.Fprintln(os.Stderr, last)
		}
	}
}
