package binaries

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sourceVariable chooses where programs that the cache lacks come from.
const sourceVariable = "RECONCILE_LAB_BINARIES"

const (
	fromAuto      = "auto"
	fromPublished = "published"
	fromBuild     = "build"
)

func source() (string, error) {
	switch from := os.Getenv(sourceVariable); from {
	case "", fromAuto:
		return fromAuto, nil
	case fromPublished, fromBuild:
		return from, nil
	default:
		return "", fmt.Errorf("%s is %q: it must be %s, %s or %s", sourceVariable, from, fromAuto, fromPublished, fromBuild)
	}
}

// publishedModules are those whose releases kwokctl knows the addresses of. kwok
// itself is always built, as that is what brings kwokctl.
var publishedModules = []string{"kubernetes", "etcd"}

const (
	// answerWithin bounds the wait for a first answer: a machine without internet
	// must get on with building.
	answerWithin = 5 * time.Second
	// stalledAfter ends a download that no longer moves.
	stalledAfter = 30 * time.Second
)

// fetch downloads programs of one module and returns those that it could not get,
// with the reason of the first. Modules that nobody publishes are no error.
func fetch(ctx context.Context, report Report, m Module, programs []Program, dir string) ([]Program, error) {
	if !slices.Contains(publishedModules, m.Name) {
		return programs, nil
	}
	kwokctl, err := Ensure(ctx, report, "kwokctl")
	if err != nil {
		return programs, err
	}
	list, err := artifacts(ctx, kwokctl["kwokctl"])
	if err != nil {
		return programs, err
	}
	for i, p := range programs {
		address, err := addressOf(list, p.Name)
		if err == nil {
			err = download(ctx, report, m, p, address, dir)
		}
		if err != nil {
			return programs[i:], err
		}
	}
	return nil, nil
}

// artifacts asks kwokctl where the pinned versions are published.
func artifacts(ctx context.Context, kwokctl string) ([]string, error) {
	empty, err := os.MkdirTemp("", "reconcile-lab-kwokctl-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(empty) }()
	cmd := exec.CommandContext(ctx, kwokctl, "get", "artifacts", "--runtime", "binary", "--filter", "binary")
	cmd.Env = append(os.Environ(), "KWOK_WORKDIR="+empty,
		"KWOK_KUBE_VERSION="+Version("kubernetes"), "KWOK_ETCD_VERSION="+strings.TrimPrefix(Version("etcd"), "v"))
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kwokctl get artifacts: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// addressOf finds a program's address. kwokctl lists the control plane only; the
// other programs of Kubernetes lie beside it. An archive's member follows a "#".
func addressOf(artifacts []string, program string) (string, error) {
	beside := ""
	for _, address := range artifacts {
		archive, _, _ := strings.Cut(address, "#")
		name := path.Base(archive)
		switch {
		case name == program, strings.HasPrefix(name, program+"-v"):
			return address, nil
		case name == "kube-apiserver":
			beside = strings.TrimSuffix(archive, name) + program
		}
	}
	if beside == "" || program == "etcd" {
		return "", fmt.Errorf("kwokctl names no address for %s", program)
	}
	return beside, nil
}

// client gives up soon where nothing answers.
var client = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: answerWithin}).DialContext,
	TLSHandshakeTimeout:   answerWithin,
	ResponseHeaderTimeout: answerWithin,
}}

// download checks a program against its published checksum before it appears in
// dir.
func download(ctx context.Context, report Report, m Module, p Program, address, dir string) error {
	address, _, _ = strings.Cut(address, "#")
	report(fmt.Sprintf("looking for the published %s %s", p.Name, m.Version))
	want, err := checksum(ctx, address)
	if err != nil {
		return err
	}
	report(fmt.Sprintf("downloading %s %s", p.Name, m.Version))
	temporary := filepath.Join(dir, "."+p.Name+".download")
	defer func() { _ = os.Remove(temporary) }()
	got, err := save(ctx, address, temporary)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has SHA-256 %s, published is %s", address, got, want)
	}
	if strings.HasSuffix(address, ".tar.gz") {
		if err := extract(temporary, p.Name); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, p.Name))
}

// checksum reads <address>.sha256, else the line of SHA256SUMS beside it.
func checksum(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerWithin)
	defer cancel()
	name := path.Base(address)
	var failed error
	for _, source := range []string{address + ".sha256", strings.TrimSuffix(address, name) + "SHA256SUMS"} {
		body, err := get(ctx, source)
		if err != nil {
			failed = err
			// Only an answer makes it worth asking again.
			if !errors.Is(err, errStatus) {
				break
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(body, 1<<20))
		_ = body.Close()
		if err != nil {
			return "", err
		}
		for _, line := range strings.Split(string(text), "\n") {
			if f := strings.Fields(line); len(f) == 1 || (len(f) == 2 && strings.TrimPrefix(f[1], "*") == name) {
				return f[0], nil
			}
		}
		failed = fmt.Errorf("%s names no checksum of %s", source, name)
	}
	return "", failed
}

var errStatus = errors.New("unexpected answer")

func get(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: GET %s: %s", errStatus, address, response.Status)
	}
	return response.Body, nil
}

// save writes what the address answers to a file and returns its SHA-256.
func save(ctx context.Context, address, file string) (sum string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := get(ctx, address)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	watchdog := time.AfterFunc(stalledAfter, cancel)
	defer watchdog.Stop()
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), readerFunc(func(b []byte) (int, error) {
		watchdog.Reset(stalledAfter)
		return body.Read(b)
	}))
	return hex.EncodeToString(hash.Sum(nil)), err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// extract replaces an archive by one program out of it.
func extract(archive, program string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for members := tar.NewReader(zipped); ; {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the archive holds no %s", program)
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || path.Base(header.Name) != program {
			continue
		}
		extracted := archive + ".extracted"
		defer func() { _ = os.Remove(extracted) }()
		out, err := os.Create(extracted)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, members); err != nil {
			return errors.Join(err, out.Close())
		}
		if err := out.Close(); err != nil {
			return err
		}
		return os.Rename(extracted, archive)
	}
}
