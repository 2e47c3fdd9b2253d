// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// Results must not replace data: files that the command reads, or parts of any archive, shard, recording or profile.
// Output, OutputFile and MakeFolder enforce this.

// inputs are the files and folders that the command reads.
var inputs []string

// ProtectInputs sets the inputs of the command, replacing earlier ones. No output may replace such a file, or the data
// in such a folder or in the archive of such an anchor file, under any of its names.
func ProtectInputs(paths []string) { inputs = slices.Clone(paths) }

// RefuseFolder returns an error if path is, or would be, a folder in data.
func RefuseFolder(path string) error {
	if err := refuseData(path, false); err != nil {
		return err
	}
	return refuseData(filepath.Join(path, "result"), false)
}

// refuseData returns an error if writing to a path, which is no link, would replace data or become a part of it. A
// profile may replace a profile.
func refuseData(path string, profile bool) error {
	what := partOf(path)
	info, err := os.Lstat(path)
	if what == "" && err == nil && info.Mode().IsRegular() {
		if what = contentOf(path, profile); what == "" {
			what = inputAt(info)
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("%s is %s, which no result may replace: name another place", path, what)
}

// archiveSuffixes are those of an archive's files beside its folder.
var archiveSuffixes = []string{".otf2", ".def", ".marker"}

// Folder of an experiment directory's shards, and the file in each that describes it.
const (
	shardsFolder = "shards"
	shardFile    = "shard.json"
)

// partOf returns what a file at a path is, or would be, a part of, by the files around it; "" for nothing.
func partOf(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return ""
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return ""
	}
	name := filepath.Base(path)
	suffix := filepath.Ext(name)
	for at := filepath.Join(dir, name); at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) == shardsFolder && (len(regular.Matches(at, filepath.Join("*", shardFile))) > 0 ||
			len(regular.Matches(at, "*.spool*")) > 0) {
			return "a part of a recorded job's data"
		}
	}
	if slices.Contains(archiveSuffixes, suffix) && isArchive(filepath.Join(dir, strings.TrimSuffix(name, suffix))) ||
		isArchive(dir) {
		return "a part of an OTF2 archive"
	}
	if strings.HasSuffix(name, recording.CallsSuffix) || name == recording.RunFile &&
		len(regular.Matches(dir, "p*.jsonl.gz")) > 0 ||
		strings.HasSuffix(name, ".jsonl.gz") && there(filepath.Join(dir, recording.RunFile)) {
		return "a part of a recording"
	}
	return ""
}

// isArchive reports whether an archive's files begin with a path: the anchor exists, or event files in the folder.
func isArchive(stem string) bool {
	return there(stem+".otf2") || len(regular.Matches(stem, "[0-9]*.evt")) > 0
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// contentOf returns the kind of data in a file, by its first bytes; "" if results may replace it.
func contentOf(path string, profile bool) string {
	f, err := regular.OpenOwn(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 16)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte{3, 'B'}) || bytes.HasPrefix(head, []byte{3, 'L'}):
		return "a file of an OTF2 archive"
	case !profile && bytes.HasPrefix(head, []byte("anchor.xml\x00")):
		return "a CUBE profile"
	}
	return ""
}

// inputAt says that a file is one that the command reads, under whatever name; "" if it is not.
func inputAt(target fs.FileInfo) string {
	links := uint64(1)
	if st, ok := target.Sys().(*syscall.Stat_t); ok {
		links = uint64(st.Nlink)
	}
	for _, in := range inputs {
		info, err := os.Stat(in)
		switch {
		case err != nil:
		case os.SameFile(info, target):
			return "an input of this command"
		case links > 1 && dataWithin(in, info, target): // without further names partOf has seen what it is
			return "another name of a part of " + in
		}
	}
	return ""
}

// dataWithin says that data of an input, a folder or an anchor file, is the target under another name.
func dataWithin(in string, info, target fs.FileInfo) (found bool) {
	roots := []string{in}
	if !info.IsDir() {
		stem := strings.TrimSuffix(in, filepath.Ext(in))
		roots = []string{stem, stem + ".def", stem + ".marker", filepath.Join(filepath.Dir(in), shardsFolder)}
	}
	for _, root := range roots {
		// what cannot be read is not what is replaced
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if at, err := d.Info(); err == nil && os.SameFile(at, target) && partOf(path) != "" {
				found = true
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}
