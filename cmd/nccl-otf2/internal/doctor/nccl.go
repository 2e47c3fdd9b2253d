// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// ncclNames are the sonames of the libraries that take profiler plugins: NVIDIA's and AMD's.
var ncclNames = []string{"libnccl.so.2", "libnccl.so", "librccl.so.1", "librccl.so"}

// findNCCL returns the NCCL and RCCL libraries of this machine, each file once, the most likely one first.
// The folders of Python packages are a best effort: only a running job knows what it imports.
func (e *examiner) findNCCL() (found []foundLibrary, missing []string) {
	add := func(p, how string) {
		if pathExists(p) && !slices.ContainsFunc(found, func(f foundLibrary) bool { return sameFile(f.path, p) }) {
			found = append(found, foundLibrary{p, how})
		}
	}
	inFolder := func(dir, how string) {
		for _, n := range ncclNames {
			add(filepath.Join(dir, n), how)
		}
	}
	for _, p := range e.Libraries {
		st, err := os.Stat(p)
		switch {
		case err != nil:
			missing = append(missing, p)
		case st.IsDir():
			before := len(found)
			inFolder(p, "named by --lib")
			inFolder(filepath.Join(p, "lib"), "named by --lib")
			if len(found) == before {
				missing = append(missing, p)
			}
		default:
			add(p, "named by --lib")
		}
	}
	for _, p := range splitFolders(e.Getenv("LD_PRELOAD")) {
		if strings.Contains(filepath.Base(p), "libnccl.so") || strings.Contains(filepath.Base(p), "librccl.so") {
			add(p, "in LD_PRELOAD")
		}
	}
	for _, d := range splitFolders(e.Getenv("LD_LIBRARY_PATH")) {
		inFolder(d, "in LD_LIBRARY_PATH")
	}
	for _, d := range e.pythonFolders() {
		inFolder(filepath.Join(d, "nvidia", "nccl", "lib"), "in a Python package")
		inFolder(filepath.Join(d, "torch", "lib"), "in a Python package")
	}
	for _, p := range e.cache {
		if slices.Contains(ncclNames, filepath.Base(p)) {
			add(e.pathInRoot(p), "in the loader's cache")
		}
	}
	for _, d := range defaultFolders {
		inFolder(e.pathInRoot(d), "in the loader's default folders")
	}
	for _, v := range []string{"NCCL_HOME", "CUDA_HOME", "CONDA_PREFIX", "ROCM_PATH"} {
		if d := e.Getenv(v); d != "" {
			inFolder(filepath.Join(d, "lib"), "in "+v)
			inFolder(filepath.Join(d, "lib64"), "in "+v)
		}
	}
	for _, d := range []string{"/usr/local/lib", "/usr/local/cuda/lib64", "/opt/rocm/lib"} {
		inFolder(e.pathInRoot(d), "in "+d)
	}
	return found, missing
}

// pythonFolders are the folders that hold Python packages.
func (e *examiner) pythonFolders() []string {
	var out []string
	prefix := func(p string) {
		for _, d := range []string{"site-packages", "dist-packages"} {
			out = append(out, regular.Matches(p, filepath.Join("lib*", "python3*", d))...)
		}
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if p := e.Getenv(v); p != "" {
			prefix(p)
		}
	}
	for _, d := range splitFolders(e.Getenv("PATH")) {
		for _, python := range []string{"python3", "python"} {
			p := filepath.Join(d, python)
			if _, err := exec.LookPath(p); err != nil {
				continue
			}
			prefix(filepath.Dir(d))
			if real, err := filepath.EvalSymlinks(p); err == nil {
				prefix(filepath.Dir(filepath.Dir(real)))
			}
		}
	}
	if home := e.Getenv("HOME"); home != "" {
		prefix(filepath.Join(home, ".local"))
	}
	prefix(e.pathInRoot("/usr/local"))
	prefix(e.pathInRoot("/usr"))
	out = append(out, e.pathInRoot("/usr/lib/python3/dist-packages"))
	slices.Sort(out)
	return slices.Compact(out)
}

// checkLibraries reports every NCCL library found and which profiler API it and the plugin would use.
func (e *examiner) checkLibraries(pluginExports []int) {
	const group = "NCCL"
	found, missing := e.findNCCL()
	for _, p := range missing {
		e.add(group, "library", Fail, p+" (named by --lib) is not there or holds no NCCL library",
			"give the path of libnccl.so.2 or librccl.so.1, or its folder")
	}
	if len(found) == 0 && len(missing) == 0 {
		e.add(group, "library", Warn, "no libnccl.so.2 or librccl.so.1 in the usual places",
			"give its path with --lib; a job that links NCCL statically is recorded all the same")
		return
	}
	for _, f := range found {
		e.examineLibrary(group, f, pluginExports)
	}
}

// missingFeatures returns what a version of the profiler API does not report (docs/nccl-profiler-api.md §2).
func missingFeatures(api int) string {
	switch {
	case api <= 3:
		return ": no calls of the application, no sizes of communicators, no GPU times"
	case api == 4:
		return ": no calls of the application"
	}
	return ""
}

// checkGPUTimes says whether a library that would use this version of the API is asked for GPU times, if that depends
// on settings.
func (e *examiner) checkGPUTimes(group string, api int) {
	switch asked, by := hidden.Stamps(api, e.Getenv); {
	case !asked:
		e.add(group, "GPU times", Warn,
			"they need "+hidden.AllGatherV+"=0, which `nccl-otf2 run` sets; without it, "+hidden.Unsafe+" can hang or "+
				"crash, so that neither they nor replays of CUDA graphs inside a host are recorded",
			"start the job with `nccl-otf2 run`, or set it in all processes of the job")
	case by != "":
		e.add(group, "GPU times", OK, by, "")
	}
	e.checkProxyPools(group, api)
}

// checkProxyPools says for how many ranks on this machine there is room in /dev/shm for what GPU times take there, if
// there is little.
func (e *examiner) checkProxyPools(group string, api int) {
	if free, err := freeBytes(e.pathInRoot(collector.ShmFolder)); err == nil && api >= 3 && api <= hidden.LastProxied {
		if ranks := free / hidden.PoolsShare / hidden.PoolBytes; ranks < enoughPools {
			e.add(group, "room for GPU times", Warn, fmt.Sprintf(
				"/dev/shm has %s free, which is enough for %d ranks on this machine (one for each communicator); "+
					"with more, GPU times are not recorded: NCCL up to 2.30 crashes with them if its proxies' "+
					"memory finds no room", units.Bytes(free), ranks), "in a container: --shm-size=2g or --ipc=host")
		}
	}
}

func (e *examiner) examineLibrary(group string, f foundLibrary, pluginExports []int) {
	name := filepath.Base(f.path)
	l, err := readLibrary(f.path)
	if err != nil {
		e.add(group, name, Warn, fmt.Sprintf("%s (%s) cannot be read: %v", f.path, f.how, err),
			"see whether the file is whole and for this machine")
		return
	}
	if !l.hasSymbol("ncclGetVersion") {
		e.add(group, name, Warn, fmt.Sprintf("%s (%s) has no symbol ncclGetVersion: not an NCCL library", f.path,
			f.how), "give the right one with --lib")
		return
	}
	found := fmt.Sprintf("%s (%s)", f.path, f.how)
	if l.version == "" {
		found += ", version unknown"
	} else {
		found += fmt.Sprintf(", version %s (%s)", l.version, l.learned)
	}
	// The names that the library itself holds decide; the table of releases stands in where they were
	// not found (a library may hide its strings).
	taken, why := l.profiler, "names in its constant data"
	if len(taken) == 0 {
		for n := 1; n <= newestProfiler(l.version); n++ {
			taken = append(taken, n)
		}
		why = "by its version"
	}
	if len(taken) == 0 {
		if l.version == "" {
			e.add(group, name, Warn, found,
				"NCCL takes profiler plugins from 2.23 on; find the version with NCCL_DEBUG=VERSION")
		} else {
			least := 1
			if len(pluginExports) > 0 {
				least = pluginExports[0]
			}
			e.add(group, name, Fail, found+", takes no profiler plugin",
				fmt.Sprintf("use NCCL %s or newer", releaseWith(least)))
		}
		return
	}
	common := 0
	for _, n := range taken {
		if slices.Contains(pluginExports, n) {
			common = n
		}
	}
	found += fmt.Sprintf(", looks for ncclProfiler %s (%s)", versionList(taken), why)
	switch {
	case common > 0:
		e.add(group, name, OK, fmt.Sprintf("%s, would use v%d%s", found, common, missingFeatures(common)), "")
		e.checkGPUTimes(group, common)
		e.reportHidden(group, name, l)
	case len(pluginExports) == 0: // reported with the installation
		e.add(group, name, Info, found, "")
	default:
		e.add(group, name, Fail, fmt.Sprintf("%s, but the plugin has %s", found, versionList(pluginExports)),
			fmt.Sprintf("use NCCL %s or newer", releaseWith(pluginExports[0])))
	}
}
