// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// compile makes a shared library of a few lines of C.
func compile(t *testing.T, path, source string) string {
	t.Helper()
	return compileWith(t, path, source, "-shared")
}

func compileWith(t *testing.T, path, source, kind string) string {
	t.Helper()
	cc := need.Program(t, "gcc", "to make libraries to look at")
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	c := exec.Command(cc, kind, "-fPIC", "-x", "c", "-o", path, "-")
	c.Stdin = strings.NewReader(source)
	testkit.Output(t, c)
	return path
}

const (
	ncclSource = `int ncclGetVersion(int* v) { *v = 22907; return 0; }
const char* banner(void) { return "NCCL version 2.29.7+cuda12.9"; }
const char* const names[] = {"ncclProfiler_v6", "ncclProfiler_v5", "ncclProfiler_v4", "ncclProfiler_v3", "ncclProfiler_v2", "ncclProfiler_v1"};`
	silentSource = `int ncclGetVersion(int* v) { *v = 0; return 0; }`
	otherSource  = `int zero(void) { return 0; }`
	pluginSource = `long ncclProfiler_v5[6] = {1}, ncclProfiler_v6[6] = {1};`
	newSource    = `long ncclProfiler_v7[6] = {1};`
)

func TestNewestProfilerByRelease(t *testing.T) {
	for version, want := range map[string]int{
		"2.22.3": 0, "2.23.4": 1, "2.24.3": 2, "2.25.1": 2, "2.26.6": 3, "2.27.7": 4, "2.28.9": 5,
		"2.29.7": 6, "2.30.7": 6, "2.31.2": 7, "2.40.1": 7, "": 0, "3.1.0": 0, "2.x.1": 0,
	} {
		testkit.Equal(t, newestProfiler(version), want, "newestProfiler(%q) =", version)
	}
}

func TestFirstReleaseWithAnAPI(t *testing.T) {
	for api, want := range map[int]string{1: "2.23", 4: "2.27", 5: "2.28", 6: "2.29", 7: "2.31"} {
		testkit.Equal(t, releaseWith(api), want, "releaseWith(%d) =", api)
	}
}

func TestVersionList(t *testing.T) {
	for _, c := range []struct {
		in   []int
		want string
	}{{nil, "none"}, {[]int{5}, "v5"}, {[]int{5, 6}, "v5 to v6"}, {[]int{1, 4, 5}, "v1, v4, v5"}} {
		testkit.Equal(t, versionList(c.in), c.want, "versionList(%v) =", c.in)
	}
}

func TestReadLibrary(t *testing.T) {
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "libsilent.so.2.28.3"), silentSource)
	testkit.Must(t, os.Symlink("libsilent.so.2.28.3", filepath.Join(dir, "libsilent.so")))
	for _, c := range []struct {
		name, path       string
		version, learned string
		looksFor         []int
		nccl             bool
		offers           []int
	}{
		{"its strings tell the version and what it looks for",
			compile(t, filepath.Join(dir, "libnccl.so.2"), ncclSource),
			"2.29.7", "version string in its constant data", []int{1, 2, 3, 4, 5, 6}, true, nil},
		{"else the name behind the links tells the version", filepath.Join(dir, "libsilent.so"), "2.28.3",
			"its file name", nil, true, nil},
		{"another library", compile(t, filepath.Join(dir, "libother.so"), otherSource), "", "", nil, false, nil},
		{"a plugin", compile(t, filepath.Join(dir, "libplugin.so"), pluginSource), "", "", nil, false, []int{5, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := testkit.Value(readLibrary(c.path))(t)
			if l.version != c.version || l.learned != c.learned || l.hasSymbol("ncclGetVersion") != c.nccl {
				t.Errorf("version %q by %q, ncclGetVersion %v; want %q by %q, %v", l.version, l.learned,
					l.hasSymbol("ncclGetVersion"), c.version, c.learned, c.nccl)
			}
			testkit.Same(t, c.looksFor, l.profiler)
			testkit.Same(t, c.offers, l.profilerVersions())
		})
	}
	text := filepath.Join(dir, "text.so")
	testkit.Write(t, text, []byte("not an ELF file"))
	_, err := readLibrary(text)
	testkit.Check(t, err != nil, "a text file was read as a library")
}

// cacheFile writes a loader cache as ldconfig does.
func cacheFile(paths ...string) []byte {
	var strings, entries bytes.Buffer
	head := 48 + 24*len(paths)
	for _, p := range paths {
		key := head + strings.Len()
		strings.WriteString(filepath.Base(p) + "\x00")
		value := head + strings.Len()
		strings.WriteString(p + "\x00")
		for _, v := range []uint32{0x0303, uint32(key), uint32(value), 0, 0, 0} {
			_ = binary.Write(&entries, binary.NativeEndian, v)
		}
	}
	out := bytes.NewBufferString("glibc-ld.so.cache1.1")
	_ = binary.Write(out, binary.NativeEndian, []uint32{uint32(len(paths)), uint32(strings.Len()), 0, 0, 0, 0, 0})
	return append(append(out.Bytes(), entries.Bytes()...), strings.Bytes()...)
}

func TestLoaderCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ld.so.cache")
	want := []string{"/opt/nccl/libnccl.so.2", "/usr/lib/libm.so.6"}
	whole := cacheFile(want...)
	write := func(b []byte) { testkit.Write(t, path, b) }
	write(whole)
	testkit.Same(t, want, loaderCache(path))
	write(append([]byte("ld.so-1.7.0\x00\x00\x00\x00\x00"), whole...))
	testkit.Same(t, want, loaderCache(path))
	for n := range whole { // cut off anywhere: fewer libraries, no panic
		write(whole[:n])
		loaderCache(path)
	}
}

// The machine's own cache, as ldconfig prints it.
func TestLoaderCacheAsLdconfigReadsIt(t *testing.T) {
	ldconfig, err := exec.LookPath("/sbin/ldconfig")
	if err != nil || !pathExists("/etc/ld.so.cache") {
		t.Skip("this machine has no ldconfig or no loader cache")
	}
	out := testkit.Output(t, exec.Command(ldconfig, "-p"))
	var want []string
	for line := range strings.Lines(string(out)) {
		if _, p, ok := strings.Cut(line, " => "); ok {
			want = append(want, strings.TrimSpace(p))
		}
	}
	testkit.Same(t, want, loaderCache("/etc/ld.so.cache"))
}

// installationFixture is a tool with its plugin, an NCCL library and an empty system.
type installationFixture struct {
	root, bin, nccl string
	env             map[string]string
	settings        Settings
	settingsErr     error
	libraries       []string
	nvml            bool
}

func newInstallation(t *testing.T) *installationFixture {
	dir := t.TempDir()
	f := &installationFixture{
		root: filepath.Join(dir, "root"), bin: filepath.Join(dir, "bin"), nccl: filepath.Join(dir, "nccl"),
		env: map[string]string{}, settings: Settings{Summary: "as by default", Directory: filepath.Join(dir, "exp"),
			Memory: 256 << 20},
	}
	compile(t, filepath.Join(f.bin, PluginName), pluginSource)
	compile(t, filepath.Join(f.nccl, "libnccl.so.2"), ncclSource)
	testkit.Must(t, os.WriteFile(filepath.Join(f.bin, "nccl-otf2"), []byte("#!/bin/sh\n"), 0o777))
	f.write(t, "/dev/shm/x", "")
	return f
}

func (f *installationFixture) write(t *testing.T, path, text string) {
	t.Helper()
	p := filepath.Join(f.root, path)
	testkit.Must(t, os.MkdirAll(filepath.Dir(p), 0o777))
	testkit.Write(t, p, []byte(text))
}

func (f *installationFixture) examine() *Report {
	return Examine(&Options{
		Getenv: func(k string) string { return f.env[k] }, Tool: filepath.Join(f.bin, "nccl-otf2"), root: f.root,
		Libraries: f.libraries, NVML: f.nvml,
		CheckSettings: func() (Settings, error) { return f.settings, f.settingsErr },
	})
}

// find gives the check of a name; there must be one.
func find(t *testing.T, r *Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, r.Checks)
	return Check{}
}

func expect(t *testing.T, r *Report, name string, status Status, words string) {
	t.Helper()
	c := find(t, r, name)
	testkit.Check(t, c.Status == status && strings.Contains(c.Found, words),
		"%s: %s %q, want %s with %q", name, c.Status, c.Found, status, words)
	testkit.Equal(t, c.Status == Warn || c.Status == Fail, c.Advice != "", "%s: status %s with advice %q", name,
		c.Status, c.Advice)
}

func TestSoundInstallation(t *testing.T) {
	f := newInstallation(t)
	f.env["LD_LIBRARY_PATH"] = f.nccl
	f.env["NCCL_PROFILER_PLUGIN"] = filepath.Join(f.bin, PluginName)
	r := f.examine()
	expect(t, r, "plugin", OK, "v5 to v6")
	expect(t, r, "collector", OK, "nccl-otf2")
	expect(t, r, "libnccl.so.2", OK,
		"version 2.29.7 (version string in its constant data), looks for ncclProfiler v1 to v6 (names in its "+
			"constant data), would use v6")
	expect(t, r, "GPU times", Warn, "they need NCCL_ALLGATHERV_ENABLE=0, which `nccl-otf2 run` sets")
	expect(t, r, "NCCL_PROFILER_PLUGIN", OK, "the plugin of this installation")
	expect(t, r, "experiment directory", OK, "writable")
	expect(t, r, "memfd", OK, "works")
	expect(t, r, "values", OK, "as by default")
	testkit.Check(t, r.Status != Fail, "a sound installation fails: %+v", r.Checks)
	f.env[hidden.AllGatherV] = "0"
	expect(t, f.examine(), "GPU times", OK, "NCCL_ALLGATHERV_ENABLE=0")
}

// A container's /dev/shm has no room for what NCCL makes for GPU times.
func TestLittleRoomForGPUTimes(t *testing.T) {
	need.Root(t, "mount a small /dev/shm")
	f := newInstallation(t)
	f.env["LD_LIBRARY_PATH"] = f.nccl
	for _, c := range f.examine().Checks {
		testkit.Check(t, c.Name != "room for GPU times", "with much room: %+v", c)
	}
	shm := filepath.Join(f.root, "dev/shm")
	testkit.Must(t, unix.Mount("tmpfs", shm, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(shm, unix.MNT_DETACH)) })
	expect(t, f.examine(), "room for GPU times", Warn, "is enough for 0 ranks")
}

func TestBrokenInstallation(t *testing.T) {
	for _, c := range []struct {
		name    string
		breakIt func(t *testing.T, f *installationFixture)
		check   string
		status  Status
		words   string
	}{
		{"no plugin beside the tool", func(t *testing.T, f *installationFixture) {
			os.Remove(filepath.Join(f.bin, PluginName))
		}, "plugin", Fail, "is missing"},
		{"a plugin that is no library", func(t *testing.T, f *installationFixture) {
			os.WriteFile(filepath.Join(f.bin, PluginName), []byte("x"), 0o666)
		}, "plugin", Fail, "is no ELF file (1 bytes)"},
		{"a library without profiler symbols", func(t *testing.T, f *installationFixture) {
			compile(t, filepath.Join(f.bin, PluginName), otherSource)
		}, "plugin", Fail, "exports no ncclProfiler_v symbol"},
		{"a plugin newer than NCCL", func(t *testing.T, f *installationFixture) {
			compile(t, filepath.Join(f.bin, PluginName), newSource)
		}, "libnccl.so.2", Fail, "but the plugin has v7"},
		{"a collector that is not there", func(t *testing.T, f *installationFixture) {
			f.settings.Collector = "/nowhere/collector"
		}, "collector", Fail, "is missing"},
		{"a collector that is a folder", func(t *testing.T, f *installationFixture) { f.settings.Collector = f.bin },
			"collector", Fail, "not an executable"},
		{"an NCCL without version", func(t *testing.T, f *installationFixture) {
			compile(t, filepath.Join(f.nccl, "libnccl.so.2"), silentSource)
		}, "libnccl.so.2", Warn, "version unknown"},
		{"an NCCL that is none", func(t *testing.T, f *installationFixture) {
			compile(t, filepath.Join(f.nccl, "libnccl.so.2"), otherSource)
		}, "libnccl.so.2", Warn, "no symbol ncclGetVersion"},
		{"a folder without NCCL", func(t *testing.T, f *installationFixture) { f.libraries = []string{f.bin} },
			"library", Fail, "holds no NCCL library"},
		{"a file in the way of the directory", func(t *testing.T, f *installationFixture) {
			f.settings.Directory = filepath.Join(f.bin, "nccl-otf2", "exp")
		}, "experiment directory", Fail, "not a folder"},
		{"settings that are refused", func(t *testing.T, f *installationFixture) {
			f.settingsErr = errors.New("no such key")
		}, "values", Fail, "no such key"},
		{"settings with a doubtful value", func(t *testing.T, f *installationFixture) {
			f.settings.Warnings = []string{"unknown name"}
		}, "values", Warn,
			"unknown name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newInstallation(t)
			f.env["LD_LIBRARY_PATH"] = f.nccl
			c.breakIt(t, f)
			r := f.examine()
			expect(t, r, c.check, c.status, c.words)
			testkit.Check(t, r.Status.weight() >= c.status.weight(),
				"the whole is %s, with a check that is %s", r.Status, c.status)
		})
	}
}

func TestValueOfPluginVariable(t *testing.T) {
	f := newInstallation(t)
	own := filepath.Join(f.bin, PluginName)
	copied := compile(t, filepath.Join(f.nccl, "libnccl-profiler-otf2.so"), pluginSource)
	compile(t, filepath.Join(f.nccl, "libnccl-profiler-inspector.so"), pluginSource)
	for _, c := range []struct {
		value  string
		status Status
		words  string
	}{
		{"", Info, "not set"},
		{own, OK, "the plugin of this installation"},
		{copied, Warn, "another copy"},
		{"otf2", Warn, "libnccl-profiler-otf2.so (in LD_LIBRARY_PATH)"},
		{"libnccl-profiler-otf2.so", Warn, "another copy"},
		{"inspector", Fail, "another profiler plugin"},
		{"none", Fail, "switches profiling off"},
		{"s", Fail, "beginning of STATIC_PLUGIN"},
		{"Static", Fail, "beginning of STATIC_PLUGIN"},
		{"STATIC_PLUGIN", Fail, "beginning of STATIC_PLUGIN"},
		{"STATIC_PLUGINS", Fail, "neither a library"},
		{"libnccl-profiler-nothere.so", Fail, "neither a library"},
		{"/nowhere/x.so", Fail, "is not there"},
		{"/" + strings.Repeat("x", maxPluginName), Fail, "cuts it"},
		{filepath.Join(f.bin, "nccl-otf2"), Fail, "is no ELF file (10 bytes)"},
		{filepath.Join(f.nccl, "libnccl.so.2"), Fail, "exports no ncclProfiler_v symbol"},
	} {
		f.env = map[string]string{"LD_LIBRARY_PATH": f.nccl, "NCCL_PROFILER_PLUGIN": c.value}
		expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", c.status, c.words)
	}

	f.env = map[string]string{"LD_LIBRARY_PATH": f.nccl}
	compile(t, filepath.Join(f.nccl, "libnccl-profiler.so"), pluginSource)
	expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", Warn, "NCCL would load")
	f.write(t, "/etc/nccl.conf", "# site\nNCCL_DEBUG=WARN\nNCCL_PROFILER_PLUGIN = none\n")
	expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", Fail, "nccl.conf) switches profiling off")
}

// A pipe that nobody writes to, a device and a file of a terabyte of nothing in the place of NCCL's settings: doctor
// ends, as if the file were not there, and reads the next one.
func TestIrregularSettingsOfNCCL(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"sparse": func(path string) error {
			testkit.Write(t, path, nil)
			return os.Truncate(path, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newInstallation(t)
			file := filepath.Join(t.TempDir(), "nccl.conf")
			testkit.Must(t, place(file))
			f.env = map[string]string{"NCCL_CONF_FILE": file}
			expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", Info, "not set")
			f.write(t, "/etc/nccl.conf", "NCCL_PROFILER_PLUGIN = none\n")
			expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", Fail, "nccl.conf) switches profiling off")
		})
	}
}

const limitRows = `Limit                     Soft Limit           Hard Limit           Units     
Max file size             1048576              unlimited            bytes     
Max processes             10                   10                   processes 
Max open files            256                  512                  files     
Max locked memory         8388608              unlimited            bytes     
Max address space         1073741824           unlimited            bytes     
`

func TestLimits(t *testing.T) {
	f := newInstallation(t)
	f.write(t, "/proc/self/limits", limitRows)
	r := f.examine()
	expect(t, r, "RLIMIT_AS", Warn, "1 GiB (can be raised to unlimited)")
	expect(t, r, "RLIMIT_NOFILE", Warn, "256 (can be raised to 512)")
	expect(t, r, "RLIMIT_FSIZE", Warn, "1 MiB")
	expect(t, r, "RLIMIT_NPROC", Warn, "10")
	expect(t, r, "RLIMIT_MEMLOCK", Info, "8 MiB")

	f.write(t, "/proc/self/limits", "something else\n")
	expect(t, f.examine(), "limits", Warn, "unknown")
}

func TestClockSource(t *testing.T) {
	const source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	for _, c := range []struct {
		source, flags string
		status        Status
		words         string
	}{
		{"tsc", "fpu constant_tsc nonstop_tsc", OK, "TSC"},
		{"tsc", "fpu constant_tsc", Info, "CLOCK_MONOTONIC"},
		{"hpet", "fpu constant_tsc nonstop_tsc", Warn, `"hpet"`},
		{"", "fpu", Info, "unknown"},
	} {
		f := newInstallation(t)
		f.write(t, source, c.source+"\n")
		f.write(t, "/proc/cpuinfo", "processor\t: 0\nflags\t\t: "+c.flags+"\n")
		if ownMachine().String() == "EM_AARCH64" {
			c.status, c.words = OK, "CNTVCT"
		}
		expect(t, f.examine(), "time stamps", c.status, c.words)
	}
}

func TestNCCLInAPythonPackage(t *testing.T) {
	f := newInstallation(t)
	venv := filepath.Join(f.root, "venv[1]") // a name that would be a pattern
	compile(t, filepath.Join(venv, "lib", "python3.12", "site-packages", "nvidia", "nccl", "lib", "libnccl.so.2"),
		ncclSource)
	f.env["VIRTUAL_ENV"] = venv
	expect(t, f.examine(), "libnccl.so.2", OK, "in a Python package")
}

func TestNoNCCL(t *testing.T) {
	expect(t, newInstallation(t).examine(), "library", Warn, "no libnccl.so.2")
}

// A file in /dev/shm needs its room there.
func TestSharedMemoryFile(t *testing.T) {
	f := newInstallation(t)
	f.settings.Shared, f.settings.Memory = true, 1<<60
	expect(t, f.examine(), "/dev/shm", Warn, "NCCL_OTF2_RING=shm takes 1 EiB of it for each process")
	f.settings.Memory = 4 << 20
	c := find(t, f.examine(), "/dev/shm")
	testkit.Check(t, c.Status != OK || strings.Contains(c.Found, "NCCL_OTF2_RING=shm takes 4 MiB"), "%+v", c)
}

func TestOldVersionsTellLess(t *testing.T) {
	for api, want := range map[int]string{1: "no calls", 3: "no GPU times", 4: "no calls of the application", 5: "",
		7: ""} {
		got := missingFeatures(api)
		testkit.Check(t, strings.Contains(got, want) && (want != "" || got == ""), "v%d: %q", api, got)
	}
}

// Sensors that were asked for and cannot be had are a warning; without being asked for, an information.
func TestNVML(t *testing.T) {
	for _, c := range []struct {
		name      string
		built     bool
		library   bool
		collector string
		words     string
	}{
		{name: "built without", library: true, words: "built without it"},
		{name: "no library", built: true, words: "libnvidia-ml.so.1 is not on this machine"},
		{name: "no collector", built: true, library: true, collector: "spool", words: "NCCL_OTF2_COLLECTOR=spool"},
		{name: "there", built: true, library: true, words: "libnvidia-ml.so.1 (in the loader's default folders)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newInstallation(t)
			f.nvml, f.settings.Collector = c.built, c.collector
			if c.library {
				f.write(t, "/usr/lib64/"+nvmlName, "")
			}
			for _, on := range []bool{false, true} {
				f.settings.NVML = on
				want := map[bool]Status{false: Info, true: Warn}[on]
				if c.name == "there" {
					want = OK
				}
				expect(t, f.examine(), "NVML", want, c.words)
			}
		})
	}
	f := newInstallation(t)
	f.settings.Collector = "/opt/collector"
	for _, check := range f.examine().Checks {
		testkit.Check(t, check.Name != "NVML", "of another collector: %+v", check)
	}
}

// What a library does not tell is said of it: a warning where settings or GPUs make it go, else an information.
func TestWhatLibrariesHide(t *testing.T) {
	f := newInstallation(t)
	f.env["LD_LIBRARY_PATH"] = f.nccl
	const name = "libnccl.so.2, not recorded"
	expect(t, f.examine(), name, Info, "GPU times of Broadcast; one-sided operations of the host")
	f.env["NCCL_ALLGATHERV_ENABLE"] = "0"
	expect(t, f.examine(), name, Info, "one-sided operations of the host")

	rccl := filepath.Join(f.root, "rocm")
	compile(t, filepath.Join(rccl, "librccl.so.1"),
		strings.ReplaceAll(ncclSource, "NCCL version 2.29.7", "RCCL version 2.30.4"))
	f.env = map[string]string{"LD_LIBRARY_PATH": rccl}
	c := f.examine().Checks
	i := slices.IndexFunc(c, func(c Check) bool { return c.Name == "librccl.so.1, not recorded" })
	testkit.Check(t, i >= 0 && c[i].Status == Warn && strings.Contains(c[i].Found, "DDA") &&
		strings.Contains(c[i].Advice, "RCCL_DDA_ENABLE=0"), "%+v", c)
	const node = "/sys/class/kfd/kfd/topology/nodes/1/properties"
	f.write(t, node, "gfx_target_version 90010\n")
	expect(t, f.examine(), "librccl.so.1, not recorded", Info, "communication that kernels")
	f.write(t, node, "gfx_target_version 90402\n")
	f.env["RCCL_DDA_ENABLE"] = "0"
	expect(t, f.examine(), "librccl.so.1, not recorded", Info, "communication that kernels")
	f.settings.Network = true
	expect(t, f.examine(), "librccl.so.1, not recorded", Info, "requests of the network plugin")
}

func TestVersionCode(t *testing.T) {
	for version, want := range map[string]int{"": 0, "2.29": 0, "2.29.7": 22907, "2.30.4": 23004, "2.9.6": 20906} {
		testkit.Equal(t, versionCode(version), want, "%q", version)
	}
}

// Files of killed processes in /dev/shm are named, with the command that saves them; those of living ones, of others,
// and what is no such file are not.
func TestOrphans(t *testing.T) {
	f := newInstallation(t)
	const none = "/dev/shm/nccl-otf2-%d-%d-4a0b-%d"
	start := testkit.Value(shm.ProcessStart(os.Getpid()))(t)
	f.write(t, fmt.Sprintf(none, os.Geteuid(), os.Getpid(), start), "mine")
	f.write(t, fmt.Sprintf(none, os.Geteuid()+1, 4711, 1), "another user's")
	f.write(t, "/dev/shm/nccl-AbCdEf", "NCCL's")
	for _, c := range f.examine().Checks {
		testkit.Check(t, c.Name != "left in /dev/shm", "%+v", c)
	}

	left := fmt.Sprintf(none, os.Geteuid(), 4711, 1) // of a process whose number is another's by now, or nobody's
	f.write(t, left, "begun")
	expect(t, f.examine(), "left in /dev/shm", Warn, "in 1 file of processes that were killed")
	c := find(t, f.examine(), "left in /dev/shm")
	testkit.Check(t, c.Advice == "rm "+filepath.Join(f.root, left), "%+v", c)

	job := testkit.Value(shmtest.New(shmtest.Options{PID: 4711, PIDStart: 1}))(t)
	defer job.Close()
	experiment := t.TempDir()
	copy(job.Header().Place[:], experiment)
	memory := testkit.Read(t, fmt.Sprintf("/proc/self/fd/%d", job.FD()))
	f.write(t, left, string(memory))
	c = find(t, f.examine(), "left in /dev/shm")
	testkit.Check(t, strings.HasPrefix(c.Advice, "nccl-otf2 unify "+experiment) &&
		strings.Contains(c.Found, "recorded in "+experiment), "%+v", c)
}
