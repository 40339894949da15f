package nodeimage

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage/archive"
)

// programLayer returns a layer with programs of a root file system and every library that
// the dynamic loader needs for them. The paths are relative to the root. It reads ELF
// headers and runs nothing, so the root file system may be of another architecture.
func programLayer(root string, programs ...string) (archive.Layer, error) {
	layer, err := usrMergeLinks(root)
	if err != nil {
		return nil, err
	}
	pending := slices.Clone(programs)
	for len(pending) > 0 {
		name := canonicalPath(pending[0])
		pending = pending[1:]
		if _, done := layer[name]; done {
			continue
		}
		source, err := resolve(root, name)
		if err != nil {
			return nil, err
		}
		layer[name] = archive.Program(source)
		needed, err := dependencies(root, source)
		if err != nil {
			return nil, fmt.Errorf("libraries of %s: %w", name, err)
		}
		pending = append(pending, needed...)
	}
	return layer, nil
}

// usrMergeLinks returns the symbolic links of a merged-/usr Debian root, such as
// /lib → usr/lib. Programs name their ELF interpreter through these links.
func usrMergeLinks(root string) (archive.Layer, error) {
	layer := archive.Layer{}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		target, err := os.Readlink(filepath.Join(root, name))
		switch {
		case err == nil:
			layer["/"+name] = archive.Entry{Link: target}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return layer, nil
}

// canonicalPath returns the path below /usr of a file that is named through a merged-/usr
// link.
func canonicalPath(name string) string {
	if strings.HasPrefix(name, "/bin/") || strings.HasPrefix(name, "/sbin/") || strings.HasPrefix(name, "/lib") {
		return "/usr" + name
	}
	return name
}

// resolve follows symbolic links inside the root and returns the path on this machine.
func resolve(root, name string) (string, error) {
	for range 20 {
		target, err := os.Readlink(filepath.Join(root, name))
		if err != nil {
			_, err := os.Stat(filepath.Join(root, name))
			return filepath.Join(root, name), err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		name = canonicalPath(target)
	}
	return "", fmt.Errorf("%s: too many symbolic links", name)
}

// dependencies returns the ELF interpreter and the libraries that a program or a library
// requires.
func dependencies(root, source string) ([]string, error) {
	binary, err := elf.Open(source)
	if err != nil {
		return nil, err
	}
	defer binary.Close()
	var needed []string
	if section := binary.Section(".interp"); section != nil {
		interpreter, err := section.Data()
		if err != nil {
			return nil, err
		}
		needed = append(needed, strings.TrimRight(string(interpreter), "\x00"))
	}
	libraries, err := binary.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, library := range libraries {
		found, err := glob(root, "usr/lib/*-linux-gnu*/"+library, "usr/lib/"+library)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s does not exist in the root file system", library)
		}
		needed = append(needed, found[0])
	}
	return needed, nil
}

// glob returns the paths in the root that match the patterns, relative to the root and in
// the order of the patterns.
func glob(root string, patterns ...string) ([]string, error) {
	var found []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, match := range matches {
			found = append(found, strings.TrimPrefix(match, filepath.Clean(root)))
		}
	}
	return found, nil
}

// merge copies the entries of the other layers into the first one and returns it.
func merge(layer archive.Layer, others ...archive.Layer) archive.Layer {
	for _, other := range others {
		maps.Copy(layer, other)
	}
	return layer
}
