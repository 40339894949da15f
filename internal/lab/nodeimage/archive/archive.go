// Package archive writes container images without a container engine: layers from files,
// and archives of images that `docker load` and `ctr images import` read.
//
// Inputs are files of this machine and bytes. Outputs are uncompressed tar archives, the
// same bytes for the same inputs. It contacts no daemon and no registry.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Config is the configuration of containers of an image.
type Config struct {
	Env        []string `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	User       string   `json:",omitempty"`
	StopSignal string   `json:",omitempty"`
}

// Image consists of layers, a configuration and tags.
type Image struct {
	Tags         []string
	Architecture string // a GOARCH value
	Config       Config
	Layers       []string // paths of uncompressed tar archives, the lowest layer first
}

type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       Config `json:"config"`
	RootFS       rootFS `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// Write writes one archive of all images. It contains a shared layer once.
func Write(w io.Writer, images ...Image) error {
	archive := tar.NewWriter(w)
	var manifest []manifestEntry
	names := map[string]string{} // names in the archive by path of the layer
	for _, image := range images {
		config := imageConfig{Architecture: image.Architecture, OS: "linux", Config: image.Config, RootFS: rootFS{Type: "layers"}}
		entry := manifestEntry{RepoTags: image.Tags}
		for _, layer := range image.Layers {
			name, written := names[layer]
			if !written {
				digest, err := fileDigest(layer)
				if err != nil {
					return err
				}
				name = digest + ".tar"
				if err := addFile(archive, name, layer); err != nil {
					return err
				}
				names[layer] = name
			}
			config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, "sha256:"+name[:len(name)-len(".tar")])
			entry.Layers = append(entry.Layers, name)
		}
		content, err := json.Marshal(config)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		entry.Config = hex.EncodeToString(sum[:]) + ".json"
		if err := addBytes(archive, entry.Config, content); err != nil {
			return err
		}
		manifest = append(manifest, entry)
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := addBytes(archive, "manifest.json", content); err != nil {
		return err
	}
	return archive.Close()
}

// WriteFile writes the archive to a file, which appears only when it is complete.
func WriteFile(path string, images ...Image) error {
	return writeAtomically(path, func(f *os.File) error { return Write(f, images...) })
}

// writeAtomically writes a temporary file and renames it to path.
func writeAtomically(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func addBytes(archive *tar.Writer, name string, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

func addFile(archive *tar.Writer, name, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}
