package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Layer contains the entries of one layer by their absolute path. Missing parent directories
// are added. All entries are owned by root.
type Layer map[string]Entry

// Entry is one file, symbolic link or directory of a layer. Exactly one of Source, Content,
// Link and Dir is set.
type Entry struct {
	Source  string // path of a file of this machine
	Content []byte
	Link    string // target of a symbolic link
	Dir     bool
	Mode    fs.FileMode // 0 means 0644 for files and 0755 for directories
}

// Program returns an executable file with the content of source.
func Program(source string) Entry { return Entry{Source: source, Mode: 0o755} }

// Text returns a file with the given content.
func Text(content string) Entry { return Entry{Content: []byte(content)} }

// WriteLayer writes the tar archive of the layer. Its entries are sorted and have no times,
// so that the same entries result in the same digest.
func WriteLayer(file string, layer Layer) error {
	return writeAtomically(file, func(f *os.File) error {
		archive := tar.NewWriter(f)
		complete := withParents(layer)
		for _, name := range slices.Sorted(maps.Keys(complete)) {
			if err := writeEntry(archive, strings.TrimPrefix(name, "/"), complete[name]); err != nil {
				return fmt.Errorf("layer file %s: %w", name, err)
			}
		}
		return archive.Close()
	})
}

// withParents returns the layer with every missing parent directory.
func withParents(layer Layer) Layer {
	complete := maps.Clone(layer)
	for name := range layer {
		for parent := path.Dir(name); parent != "/" && parent != "."; parent = path.Dir(parent) {
			if _, exists := complete[parent]; !exists {
				complete[parent] = Entry{Dir: true}
			}
		}
	}
	return complete
}

func writeEntry(archive *tar.Writer, name string, entry Entry) error {
	header := &tar.Header{Name: name, Mode: int64(tarMode(entry))}
	switch {
	case entry.Dir:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return archive.WriteHeader(header)
	case entry.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, entry.Link
		return archive.WriteHeader(header)
	}
	header.Typeflag = tar.TypeReg
	content, size, err := open(entry)
	if err != nil {
		return err
	}
	defer content.Close()
	header.Size = size
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return err
}

// open returns the content of a file and its size.
func open(entry Entry) (io.ReadCloser, int64, error) {
	if entry.Source == "" {
		return io.NopCloser(bytes.NewReader(entry.Content)), int64(len(entry.Content)), nil
	}
	f, err := os.Open(entry.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// tarMode returns the mode in the encoding of tar, which has another sticky bit than Go.
func tarMode(entry Entry) uint32 {
	mode := entry.Mode
	switch {
	case mode == 0 && entry.Dir:
		return 0o755
	case mode == 0 && entry.Link != "":
		return 0o777
	case mode == 0:
		return 0o644
	}
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}
