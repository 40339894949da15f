package binaries

import (
	"os"
	"path/filepath"
)

// Dir is the cache folder of all programs.
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

// Find returns where a program is or will be, and whether it is there.
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

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
