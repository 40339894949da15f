package binaries

import (
	"os"
	"path/filepath"
)

// Dir returns the cache directory of all programs.
func Dir() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "reconcile-lab", "bin"), nil
}

// Find returns the path of a program in the cache, and reports whether it exists.
func Find(name string) (path string, found bool, err error) {
	m, p, err := lookup(name)
	if err != nil {
		return "", false, err
	}
	dir, err := moduleDir(m)
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(dir, p.Name)
	return path, executable(path), nil
}

func moduleDir(m Module) (string, error) {
	dir, err := Dir()
	return filepath.Join(dir, m.Name+"-"+m.Version), err
}

// executable reports whether the path is a regular file that can be executed.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
