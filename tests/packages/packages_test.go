// SPDX-License-Identifier: Apache-2.0

// Package packages installs what `make packages` made, as its users do, and records with what is installed:
//
//	make packages-test
package packages

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var (
	folder   = flag.String("packages", "", "look at the packages in this `folder`")
	releases = flag.String("releases", "stable bullseye",
		"Debian `releases` to install them in, older ones as name=mirror")
)

// oldest is the newest version of the C library whose functions may be needed.
var oldest = [2]int{2, 17}

// packages gives the files that match a pattern, of which there must be so many.
func packages(t *testing.T, pattern string, want int) []string {
	t.Helper()
	if *folder == "" {
		t.Skip("no -packages: make packages-test runs this")
	}
	files, err := filepath.Glob(filepath.Join(*folder, pattern))
	testkit.Require(t, err == nil && len(files) == want, "%d files %s, want %d (%v)", len(files), pattern, want, err)
	return files
}

// unpack writes a tar archive into a folder, and gives the single folder that is in it.
func unpack(t *testing.T, file, to string) string {
	t.Helper()
	testkit.Output(t, exec.Command("tar", "-xzf", file, "-C", to))
	inside, err := os.ReadDir(to)
	testkit.Require(t, err == nil && len(inside) == 1, "%s has %v (%v), want one folder", file, inside, err)
	return filepath.Join(to, inside[0].Name())
}

// Programs and libraries of all archives are of their machine, and need no function that the C library has had for a
// shorter time than since its version 2.17.
func TestOldSystemsLoadAll(t *testing.T) {
	machines := map[string]elf.Machine{"x86_64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64}
	for _, file := range packages(t, "*.tar.gz", 2) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			root, looked := unpack(t, file, t.TempDir()), 0
			_, machine, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), "-linux-")
			testkit.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				f, err := elf.Open(path)
				if err != nil {
					return nil // a text
				}
				defer f.Close()
				looked++
				testkit.Equal(t, f.Machine, machines[machine], "%s is for", path)
				needs, err := f.DynamicVersionNeeds()
				for _, library := range needs {
					for _, version := range library.Needs {
						testkit.Check(t, !newer(version.Dep), "%s needs %s of %s", path, version.Dep, library.Name)
					}
				}
				return err
			}))
			testkit.Check(t, looked >= 6, "%d programs and libraries", looked)
		})
	}
}

// newer reports whether a symbol version (GLIBC_2.27) came after the oldest C library that is supported.
func newer(version string) bool {
	number, ok := strings.CutPrefix(version, "GLIBC_")
	if !ok {
		return true
	}
	major, minor, _ := strings.Cut(number, ".")
	minor, _, _ = strings.Cut(minor, ".") // 2.2.5
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA != nil || errB != nil || a > oldest[0] || a == oldest[0] && b > oldest[1]
}

func TestNewer(t *testing.T) {
	for version, want := range map[string]bool{"GLIBC_2.2.5": false, "GLIBC_2.17": false, "GLIBC_2.18": true,
		"GLIBC_3.0": true, "GLIBC_PRIVATE": true, "GCC_3.0": true} {
		testkit.Equal(t, newer(version), want, "%s: %t", version, !want)
	}
}

// place is where something is installed: run starts a program there.
type place struct {
	root string   // "": that of this machine
	dir  string   // as programs there see it
	env  []string // beside the usual
}

func (p place) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = p.dir, append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.dir, "LC_ALL=C"},
		p.env...)
	if p.root != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root}
	}
	out, err := cmd.CombinedOutput()
	testkit.Require(t, err == nil, "%s %q: %v\n%s", program, args, err, out)
	return string(out)
}

// records plays a recording, and wants archive, answer and page to be there.
func (p place) records(t *testing.T, tool string) {
	t.Helper()
	p.run(t, tool, "replay", "09-straggler-4p", "--clock", "recorded", "--dir", "exp")
	raw, err := filepath.Glob(filepath.Join(p.root, p.dir, "exp/shards/*.spool*"))
	testkit.Check(t, err == nil && len(raw) == 0, "the plugin did not find the collector, and wrote %q (%v)", raw, err)
	answers(t, p.run(t, tool, "report", "exp"))
	p.run(t, tool, "timeline", "exp")
	page, err := os.Stat(filepath.Join(p.root, p.dir, "exp/timeline.html"))
	testkit.Check(t, err == nil && page.Size() >= 1<<16, "no page: %v, %v", page, err)
	testkit.Contains(t, p.run(t, tool, "doctor"), "libnccl-profiler-otf2.so")
}

// answers wants a report to have the answer of the recording 09-straggler-4p.
func answers(t *testing.T, report string) {
	t.Helper()
	testkit.Check(t, regexp.MustCompile(`(?m)^Rank 2 on \S+ made the others wait: `).MatchString(report),
		"the report says\n%s", report)
}

func nativeMachine(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(string(testkit.Output(t, exec.Command("uname", "-m"))))
}

// An unpacked archive works where it lies.
func TestArchiveRecords(t *testing.T) {
	file := packages(t, "*-linux-"+nativeMachine(t)+".tar.gz", 1)[0]
	root := unpack(t, file, t.TempDir())
	place{dir: t.TempDir()}.records(t, filepath.Join(root, "bin/nccl-otf2"))
}

// files lists what is in a root, but for what package managers and the kernel keep for themselves.
func files(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	testkit.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root)
		switch name {
		case "/proc", "/sys", "/dev", "/tmp", "/var/lib/dpkg", "/var/lib/rpm", "/var/log", "/var/cache":
			return fs.SkipDir
		}
		all[name] = true
		return err
	}))
	return all
}

// Debian systems without Go and gcc, the current one and one with a C library of 2020 (glibc 2.31, as Ubuntu 20.04 has
// it), install the package, record, and have nothing left of it when it is removed; so they do with the rpm.
func TestDebInACleanRoot(t *testing.T) {
	for _, release := range strings.Fields(*releases) {
		name, mirror, _ := strings.Cut(release, "=")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			debInACleanRoot(t, name, mirror)
		})
	}
}

func debInACleanRoot(t *testing.T, release, mirror string) {
	t.Helper()
	machine := nativeMachine(t)
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	file := packages(t, "*_"+arch+".deb", 1)[0]
	need.Root(t, "makes a root of its own")
	need.Program(t, "debootstrap", "package debootstrap")
	root := filepath.Join(t.TempDir(), "root")
	bootstrap := []string{"--variant=minbase", release, root}
	if mirror != "" {
		bootstrap = append(bootstrap, mirror)
	}
	out, err := exec.Command("debootstrap", bootstrap...).CombinedOutput()
	if err != nil {
		need.NoError(t, "Debian "+release, fmt.Errorf(
			"debootstrap: %w\n%s", err, out[max(0, len(out)-500):])) // mirrors drop old ones some day
	}
	if release == "stable" {
		t.Run("image", func(t *testing.T) { imageFromRecipe(t, root, file) })
	}
	text := testkit.Read(t, file)
	testkit.Must(t, os.WriteFile(filepath.Join(root, "tmp/nccl-otf2.deb"), text, 0o644))
	testkit.Must(t, syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""))
	t.Cleanup(func() { testkit.Must(t, syscall.Unmount(filepath.Join(root, "proc"), syscall.MNT_DETACH)) })

	for _, absent := range []string{"/usr/bin/gcc", "/usr/bin/go", "/usr/local/go"} {
		_, err := os.Stat(filepath.Join(root, absent))
		testkit.Check(t, err != nil, "%s is there: this proves nothing", absent)
	}
	inRoot := place{root: root, dir: "/tmp"}
	installed(t, root, "deb", func() { inRoot.run(t, "/usr/bin/dpkg", "-i", "/tmp/nccl-otf2.deb") },
		func() { inRoot.run(t, "/usr/bin/dpkg", "-r", "nccl-otf2") })
	// That of this machine, told of the root. The C library there is no rpm, and no package called filesystem has
	// brought these folders, which are therefore in none of ours.
	for _, folder := range []string{"zsh/site-functions", "fish/vendor_completions.d"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(root, "usr/share", folder), 0o755))
	}
	manager := func(args ...string) {
		out, err := exec.Command(need.Program(t, "rpm", "package rpm"),
			append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...).CombinedOutput()
		testkit.Require(t, err == nil, "rpm %q: %v\n%s", args, err, out)
	}
	rpm := packages(t, "*."+machine+".rpm", 1)[0]
	installed(t, root, "rpm", func() { manager("-i", "--nodeps", rpm) }, func() { manager("-e", "nccl-otf2") })
}

// installed records in a root with what an installation puts there, and wants nothing of it to be left.
func installed(t *testing.T, root, job string, install, remove func()) {
	t.Helper()
	dir := filepath.Join("/tmp", job)
	testkit.Must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	before := files(t, root)
	install()
	place{root: root, dir: dir}.records(t, "/usr/bin/nccl-otf2")
	remove()
	for name := range files(t, root) {
		testkit.Check(t, before[name], "%s: left: %s", job, name)
	}
}

// What rpm reads in its packages is what they should say and have.
func TestRpm(t *testing.T) {
	for _, file := range packages(t, "*.rpm", 2) {
		rpm := need.Program(t, "rpm", "package rpm")
		ask := func(args ...string) string {
			out, err := exec.Command(rpm, append(args, file)...).CombinedOutput()
			testkit.Require(t, err == nil, "rpm %q: %v\n%s", args, err, out)
			return string(out)
		}
		testkit.Contains(t, ask("-K", "--nosignature"), "digests OK")
		list := ask("-q", "-l", "-p")
		testkit.Contains(t, list, "/usr/bin/nccl-otf2\n", "/usr/lib64/libnccl-profiler-otf2.so\n",
			"/usr/lib64/librccl-profiler-otf2.so\n", "/usr/share/man/man1/nccl-otf2-report.1",
			"/usr/include/nccl_otf2.h\n")
		testkit.Contains(t, ask("-q", "--requires", "-p"), "glibc >= 2.17")
	}
}

// Checksums are those of the files, and the list of what is inside names the modules.
func TestChecksumsAndContents(t *testing.T) {
	check := exec.Command("sha256sum", "--check", "--strict", filepath.Base(packages(t, "SHA256SUMS", 1)[0]))
	check.Dir, check.Env = *folder, append(os.Environ(), "LC_ALL=C")
	testkit.Equal(t, strings.Count(string(testkit.Output(t, check)), ": OK\n"), 9+5, "files with checksums")
	var contents struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name string }
	}
	testkit.Must(t, json.NewDecoder(bytes.NewReader(testkit.Read(t, packages(t, "*.cdx.json", 1)[0]))).Decode(
		&contents))
	named := make(map[string]bool)
	for _, c := range contents.Components {
		named[c.Name] = true
	}
	testkit.Check(t, contents.Format == "CycloneDX" && named["go.yaml.in/yaml/v3"] &&
		named["github.com/NVIDIA/go-nvml"], "%s names %v", contents.Format, named)
}
