package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries/filelock"
)

// Report receives the current step, a short phrase for the user.
type Report func(step string)

// Ensure downloads or builds the named programs that the cache does not contain, and
// returns the path of each.
func Ensure(ctx context.Context, report Report, names ...string) (map[string]string, error) {
	from, err := source()
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string, len(names))
	missing := map[string][]Program{}
	for _, name := range names {
		m, p, err := lookup(name)
		if err != nil {
			return nil, err
		}
		path, found, err := Find(name)
		if err != nil {
			return nil, err
		}
		if _, seen := paths[name]; !seen && !found {
			missing[m.Name] = append(missing[m.Name], p)
		}
		paths[name] = path
	}
	// One module at a time, since one build of the Go tool uses every core.
	for _, m := range modules {
		if len(missing[m.Name]) == 0 {
			continue
		}
		if err := obtain(ctx, report, m, missing[m.Name], from); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// Assets returns a directory with etcd, kube-apiserver and kubectl, which
// controller-runtime's envtest reads from KUBEBUILDER_ASSETS.
func Assets(ctx context.Context, report Report) (string, error) {
	paths, err := Ensure(ctx, report, "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		return "", err
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, fmt.Sprintf("envtest-kubernetes-%s-etcd-%s", Version("kubernetes"), Version("etcd")))
	unlock, err := lock(ctx, dir, func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	for name, path := range paths {
		link := filepath.Join(dir, name)
		if target, err := os.Readlink(link); err == nil && target == path {
			continue
		}
		if err := os.RemoveAll(link); err != nil {
			return "", err
		}
		if err := os.Symlink(path, link); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// obtain downloads or builds programs of one module while it holds the lock of the module.
func obtain(ctx context.Context, report Report, m Module, programs []Program, from string) error {
	dir, err := moduleDir(m)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, dir, func() { report("waiting for another process that downloads or builds " + m.Name) })
	if err != nil {
		return err
	}
	defer unlock()

	// Another process may have created some before this one got the lock.
	var missing []Program
	for _, p := range programs {
		if !executable(filepath.Join(dir, p.Name)) {
			missing = append(missing, p)
		}
	}
	if from != fromBuild && len(missing) > 0 {
		missing, err = downloadAll(ctx, report, m, missing, dir)
		if from == fromPublished && len(missing) > 0 {
			return fmt.Errorf("download %s: %w; unset %s to build it instead", m.Name, err, sourceVariable)
		}
		if err != nil {
			report(fmt.Sprintf("cannot download %s %s, building it instead (%v)", m.Name, m.Version, err))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return build(ctx, report, m, missing, dir)
}

// lock prevents other processes from creating the same programs.
func lock(ctx context.Context, dir string, waiting func()) (func(), error) {
	return filelock.Take(ctx, filepath.Join(dir, ".lock"), waiting)
}
