//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func (l *testLab) dir() string { return filepath.Join(l.state, l.name) }

// remove removes the suite's own lab and asserts that nothing of it is left.
func (l *testLab) remove(ctx context.Context) {
	GinkgoHelper()
	if !l.own {
		return
	}
	By("removing the lab")
	processes, containers, volumes := l.processes(), l.containers(ctx), l.volumes(ctx)
	Expect(l.run(ctx, "", l.binary(), "down", "--name", l.name)).To(succeed())

	By("checking that nothing of it remains")
	if len(l.members) > 0 {
		// Where there was nothing to be found, nothing is proved.
		Expect(append(processes, containers...)).NotTo(BeEmpty())
	}
	Expect(l.dir()).NotTo(BeADirectory())
	Expect(l.processes()).To(BeEmpty())
	Expect(l.containers(ctx)).To(BeEmpty())
	for _, volume := range volumes {
		Expect(l.run(ctx, "", "docker", "volume", "inspect", volume)).NotTo(succeed())
	}
	Expect(l.run(ctx, "", l.binary(), "down", "--name", l.name)).To(succeed(), "it may be repeated")
	Expect(l.dir()).NotTo(BeADirectory())
}

// processes whose command lines name the lab's folder.
func (l *testLab) processes() []string {
	GinkgoHelper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	dir, err := filepath.EvalSymlinks(l.state)
	if err != nil {
		dir = l.state
	}
	var found []string
	for _, file := range files {
		// A process may have ended meanwhile.
		content, _ := os.ReadFile(file)
		if strings.Contains(string(content), filepath.Join(dir, l.name)+string(filepath.Separator)) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}

// containers of the lab, running or not.
func (l *testLab) containers(ctx context.Context) []string {
	GinkgoHelper()
	if l.provider != kind {
		return nil
	}
	out := l.run(ctx, "", "docker", "ps", "--all", "--filter", "name=^rl-"+l.name+"-", "--format", "{{.Names}}")
	Expect(out).To(succeed())
	return strings.Fields(out.stdout)
}

func (l *testLab) volumes(ctx context.Context) []string {
	GinkgoHelper()
	var volumes []string
	for _, container := range l.containers(ctx) {
		out := l.run(ctx, "", "docker", "inspect", "--format", `{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}`, container)
		Expect(out).To(succeed())
		volumes = append(volumes, strings.Fields(out.stdout)...)
	}
	return volumes
}
