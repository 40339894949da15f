// Command deploy deploys the hub manager to the hub of a kind lab. It builds the image of the
// manager without a registry and loads it into the node of the hub. Then it applies the
// manifests of deploy/ and waits until the manager is ready. It is idempotent. With `undeploy` it removes
// the manager and its RBAC; CRDs, members and caches stay.
//
// It must run in the root directory of the repository.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/kind"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage/archive"
)

const (
	// image is the image in the manifests.
	image = "reconcile-lab/hub:dev"
	// user is the non-root user in the manifests.
	user = "65532:65532"
	// rolloutTimeout is long enough for a machine that runs four clusters.
	rolloutTimeout = "3m"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	labName := flag.String("name", "kind", "name of the kind lab")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: deploy [--name LAB] [undeploy]")
		flag.PrintDefaults()
	}
	flag.Parse()
	err := run(ctx, *labName, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, labName string, args []string) error {
	work, err := os.MkdirTemp("", "reconcile-lab-deploy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	provider := kind.New(labName)
	if !provider.Ready(ctx, lab.Hub) {
		return fmt.Errorf("the hub of kind lab %s does not answer; run `make clusters`", labName)
	}
	d := deployment{provider: provider, work: work}
	if err := d.connect(ctx); err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return d.deploy(ctx)
	case len(args) == 1 && args[0] == "undeploy":
		return d.undeploy(ctx)
	}
	return fmt.Errorf("unknown arguments %q; must be undeploy, or none", args)
}

// deployment deploys to the hub of one lab.
type deployment struct {
	provider            *kind.Provider
	work                string
	kubectl, kubeconfig string
}

// step prints progress.
func step(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// connect provides kubectl and writes a kubeconfig for the hub.
func (d *deployment) connect(ctx context.Context) error {
	programs, err := binaries.Ensure(ctx, func(s string) { step("%s", s) }, "kubectl")
	if err != nil {
		return err
	}
	kubeconfig, err := d.provider.Kubeconfig(ctx, lab.Hub)
	if err != nil {
		return err
	}
	d.kubectl, d.kubeconfig = programs["kubectl"], filepath.Join(d.work, "kubeconfig")
	return os.WriteFile(d.kubeconfig, kubeconfig, 0o600)
}

// deploy builds and deploys the manager.
func (d *deployment) deploy(ctx context.Context) error {
	step("building the hub manager")
	hub := filepath.Join(d.work, "hub")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", hub, "./cmd/hub")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/hub: %w\n%s", err, out)
	}
	tag, err := d.loadImage(ctx, hub)
	if err != nil {
		return err
	}

	manifests, err := d.run(ctx, nil, "kustomize", "deploy")
	if err != nil {
		return err
	}
	if !strings.Contains(manifests, "image: "+image) {
		return fmt.Errorf("the manifests of deploy/ do not contain image %s", image)
	}
	// The tag contains a hash of the binary, so that only a changed binary causes a rollout.
	manifests = strings.ReplaceAll(manifests, "image: "+image, "image: "+tag)
	step("applying deploy/")
	if _, err := d.run(ctx, strings.NewReader(manifests), "apply", "--server-side", "--force-conflicts", "--field-manager=reconcile-lab-deploy", "--filename=-"); err != nil {
		return err
	}
	step("waiting for the hub manager to be ready")
	if _, err := d.run(ctx, nil, d.namespaced("rollout", "status", "deployment/hub", "--timeout="+rolloutTimeout)...); err != nil {
		return errors.Join(err, d.explain(ctx))
	}
	step("the hub manager is ready (%s)", tag)
	return nil
}

// loadImage builds an image of the binary, loads it into the node of the hub and returns its
// tag.
func (d *deployment) loadImage(ctx context.Context, hub string) (string, error) {
	content, err := os.ReadFile(hub)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	tag := image + "-" + hex.EncodeToString(sum[:])[:12]

	step("loading its image into the hub")
	layer, file := filepath.Join(d.work, "layer.tar"), filepath.Join(d.work, "image.tar")
	if err := archive.WriteLayer(layer, archive.Layer{"/hub": archive.Program(hub)}); err != nil {
		return "", err
	}
	err = archive.WriteFile(file, archive.Image{
		Tags: []string{tag}, Architecture: runtime.GOARCH,
		Config: archive.Config{Entrypoint: []string{"/hub"}, User: user},
		Layers: []string{layer},
	})
	if err != nil {
		return "", err
	}
	return tag, d.provider.LoadImage(ctx, lab.Hub, file)
}

// explain returns an error with the pods and the last log lines of a failed rollout.
func (d *deployment) explain(ctx context.Context) error {
	const component = "--selector=app.kubernetes.io/component=manager"
	pods, err := d.run(ctx, nil, d.namespaced("get", "pods", component, "--output=wide")...)
	if err != nil {
		return err
	}
	logs, err := d.run(ctx, nil, d.namespaced("logs", component, "--tail=20")...)
	if err != nil {
		return fmt.Errorf("%s\n%w", pods, err)
	}
	return fmt.Errorf("%s\n%s", pods, logs)
}

// undeploy removes the manager and its RBAC.
func (d *deployment) undeploy(ctx context.Context) error {
	step("removing the hub manager")
	if _, err := d.run(ctx, nil, d.namespaced("delete", "--ignore-not-found", "deployment/hub", "service/hub-metrics", "serviceaccount/hub", "role/hub", "rolebinding/hub")...); err != nil {
		return err
	}
	_, err := d.run(ctx, nil, "delete", "--ignore-not-found", "clusterrole/reconcile-lab-hub", "clusterrolebinding/reconcile-lab-hub")
	return err
}

// namespaced adds the namespace of the manager to arguments of kubectl.
func (d *deployment) namespaced(args ...string) []string {
	return append([]string{"--namespace", v1alpha1.InventoryNamespace}, args...)
}

// run runs kubectl against the hub and returns its output.
func (d *deployment) run(ctx context.Context, in io.Reader, args ...string) (string, error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, d.kubectl, append([]string{"--kubeconfig", d.kubeconfig}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}
