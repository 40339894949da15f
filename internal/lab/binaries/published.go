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

// sourceVariable is the environment variable that selects the source of programs which the
// cache does not contain.
const sourceVariable = "RECONCILE_LAB_BINARIES"

const (
	fromAuto      = "auto"
	fromPublished = "published"
	fromBuild     = "build"
)

// source returns the value of sourceVariable, or its default.
func source() (string, error) {
	switch from := os.Getenv(sourceVariable); from {
	case "", fromAuto:
		return fromAuto, nil
	case fromPublished, fromBuild:
		return from, nil
	default:
		return "", fmt.Errorf("%s: %q: must be one of: %s, %s, %s", sourceVariable, from, fromAuto, fromPublished, fromBuild)
	}
}

// publishedModules are the modules whose download addresses kwokctl knows. kwok itself is
// always built, since kwokctl is one of its programs.
var publishedModules = []string{"kubernetes", "etcd"}

const (
	// connectTimeout limits the wait for the first answer, so that a machine without
	// internet access starts to build soon.
	connectTimeout = 5 * time.Second
	// stallTimeout ends a download that receives no data.
	stallTimeout = 30 * time.Second
)

// downloadAll downloads programs of one module. It returns the programs that remain to be
// built, and the first error. A module that is not published is not an error.
func downloadAll(ctx context.Context, report Report, m Module, programs []Program, dir string) ([]Program, error) {
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

// artifacts returns the download addresses of the pinned versions, as kwokctl lists them.
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

// addressOf returns the download address of a program. kwokctl lists the control plane
// only; the other programs of Kubernetes are in the same directory as kube-apiserver. For
// an archive, the name of the member follows a "#".
func addressOf(artifacts []string, program string) (string, error) {
	sibling := ""
	for _, address := range artifacts {
		archive, _, _ := strings.Cut(address, "#")
		name := path.Base(archive)
		switch {
		case name == program, strings.HasPrefix(name, program+"-v"):
			return address, nil
		case name == "kube-apiserver":
			sibling = strings.TrimSuffix(archive, name) + program
		}
	}
	if sibling == "" || program == "etcd" {
		return "", fmt.Errorf("kwokctl lists no address for %s", program)
	}
	return sibling, nil
}

// client fails soon if no server answers.
var client = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
	TLSHandshakeTimeout:   connectTimeout,
	ResponseHeaderTimeout: connectTimeout,
}}

// download downloads one program and verifies its published checksum before the file
// appears in dir.
func download(ctx context.Context, report Report, m Module, p Program, address, dir string) error {
	address, _, _ = strings.Cut(address, "#")
	report(fmt.Sprintf("looking for %s %s to download", p.Name, m.Version))
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
		return fmt.Errorf("%s: SHA-256 is %s, want %s as published", address, got, want)
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

// checksum returns the published SHA-256 of an address, from <address>.sha256 or from
// SHA256SUMS in the same directory.
func checksum(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	name := path.Base(address)
	var lastErr error
	for _, source := range []string{address + ".sha256", strings.TrimSuffix(address, name) + "SHA256SUMS"} {
		body, err := get(ctx, source)
		if err != nil {
			lastErr = err
			// Without any answer, the next address would not answer either.
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
		lastErr = fmt.Errorf("%s contains no checksum of %s", source, name)
	}
	return "", lastErr
}

// errStatus is the error of an answer other than 200 OK.
var errStatus = errors.New("unexpected status")

// get requests the address and returns the body of the answer.
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

// save downloads the address to a file and returns the SHA-256 of the content.
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
	watchdog := time.AfterFunc(stallTimeout, cancel)
	defer watchdog.Stop()
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), readerFunc(func(b []byte) (int, error) {
		watchdog.Reset(stallTimeout)
		return body.Read(b)
	}))
	return hex.EncodeToString(hash.Sum(nil)), err
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// extract replaces an archive with the program that it contains.
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
			return fmt.Errorf("the archive does not contain %s", program)
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
