// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// PluginName is the file name of the library that NCCL loads.
const PluginName = "libnccl-profiler-otf2.so"

// maxPluginName is the longest value of NCCL_PROFILER_PLUGIN that NCCL does not cut (a buffer of 255 bytes).
const maxPluginName = 254

// pluginPath returns the path of the tool's plugin, or if there is none the path that is searched first.
func (e *examiner) pluginPath() string {
	path, err := installed.Library(e.Tool, PluginName)
	if err != nil {
		return filepath.Join(filepath.Dir(e.Tool), PluginName)
	}
	return path
}

// checkInstallation checks the plugin and the collector, and returns the profiler APIs that the plugin exports.
func (e *examiner) checkInstallation() []int {
	const group = "installation"
	plugin := e.pluginPath()
	exports, err := CheckPlugin(plugin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.add(group, "plugin", Fail, plugin+" is missing, and there is none in the prefix's lib or lib64",
			"copy "+PluginName+" beside nccl-otf2 (`make build` makes both), or `make install PREFIX=…`")
	case err != nil:
		e.add(group, "plugin", Fail, fmt.Sprintf("%s %v", plugin, err),
			"build it on this machine, or copy it again, to a folder from which programs may run")
	case len(plugin) > maxPluginName:
		e.add(group, "plugin", Fail, fmt.Sprintf(
			"%s: the path has %d bytes, NCCL cuts it at %d", plugin, len(plugin), maxPluginName),
			"move it to a shorter path")
	default:
		e.add(group, "plugin", OK, fmt.Sprintf("%s exports ncclProfiler %s", plugin, versionList(exports)), "")
	}
	e.checkPluginForRCCL(group, plugin)
	e.checkCollector(group)
	return exports
}

// rcclPluginName is the plugin's other name, by which some releases of RCCL find it.
const rcclPluginName = "librccl-profiler-otf2.so"

// checkPluginForRCCL checks the file with that name, if it exists.
func (e *examiner) checkPluginForRCCL(group, plugin string) {
	path := filepath.Join(filepath.Dir(plugin), rcclPluginName)
	if _, err := os.Lstat(path); err != nil || sameFile(path, plugin) {
		return
	}
	if _, err := CheckPlugin(path); err != nil {
		e.add(group, rcclPluginName, Warn, fmt.Sprintf("%s %v", path, err),
			fmt.Sprintf("ln -sf %s %s", PluginName, path))
	}
}

func (e *examiner) checkCollector(group string) {
	const name = "collector"
	path, how := installed.CollectorOf(e.Tool), "of this installation"
	switch c := e.settings.Collector; c {
	case "", "nccl-otf2":
	case "spool":
		e.add(group, name, Info,
			"NCCL_OTF2_COLLECTOR=spool: the plugin writes raw files, `nccl-otf2 unify` converts them after the run", "")
		return
	default:
		path, how = c, "named by NCCL_OTF2_COLLECTOR"
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		e.add(group, name, Fail, fmt.Sprintf("%s (%s) is missing", path, how),
			"install nccl-otf2 with the plugin, or set NCCL_OTF2_COLLECTOR to its path")
	case st.IsDir() || st.Mode()&0o111 == 0:
		e.add(group, name, Fail, fmt.Sprintf("%s (%s) is not an executable file", path, how),
			"chmod +x it, or set NCCL_OTF2_COLLECTOR to the right path")
	default:
		if err := checkProgram(path); err != nil {
			e.add(group, name, Warn, fmt.Sprintf("%s (%s) %v: the plugin writes raw files in its place", path, how,
				err), "install nccl-otf2 anew, in a folder from which programs may run; until then, `nccl-otf2 unify` converts the raw files")
			return
		}
		e.add(group, name, OK, fmt.Sprintf("%s (%s)", path, how), "")
	}
}

// checkPluginVariable checks NCCL_PROFILER_PLUGIN by the rules of NCCL 2.27 and newer.
func (e *examiner) checkPluginVariable() {
	const group, name = "NCCL", "NCCL_PROFILER_PLUGIN"
	value, where := e.Getenv(name), "environment"
	if value == "" {
		if v, file := e.configuredPlugin(); v != "" {
			value, where = v, file
		}
	}
	set := "start the job with `nccl-otf2 run`, or export " + name + "=" + e.pluginPath()
	verdict := func(status Status, text string) {
		advice := ""
		if status != OK && status != Info {
			advice = set
		}
		e.add(group, name, status, fmt.Sprintf("%s (%s) %s", value, where, text), advice)
	}
	if value == "" {
		if p, ok := e.resolveLibrary("libnccl-profiler.so"); ok {
			e.add(group, name, Warn, fmt.Sprintf("not set; NCCL would load %s (%s)", p.path, p.how), set)
			return
		}
		e.add(group, name, Info,
			"not set; `nccl-otf2 run` sets it (to set it yourself: export "+name+"="+e.pluginPath()+")", "")
		return
	}
	switch {
	case len(value) > maxPluginName:
		verdict(Fail, fmt.Sprintf("has %d bytes, NCCL cuts it at %d", len(value), maxPluginName))
	case strings.EqualFold(value, "none"):
		verdict(Fail, "switches profiling off")
	case len(value) <= len("STATIC_PLUGIN") && strings.EqualFold(value, "STATIC_PLUGIN"[:len(value)]):
		verdict(Fail, "is a beginning of STATIC_PLUGIN: NCCL looks for a plugin in the program itself")
	case strings.Contains(value, "/"):
		switch {
		case !pathExists(value):
			verdict(Fail, "is not there")
		case !filepath.IsAbs(value):
			e.judgeLibrary(verdict, value, "is found from this folder only", Warn)
		default:
			e.judgeLibrary(verdict, value, "", OK)
		}
	default:
		for _, candidate := range []string{value, "libnccl-profiler-" + value + ".so",
			"librccl-profiler-" + value + ".so"} {
			if candidate != value && strings.HasPrefix(value, "lib") && strings.HasSuffix(value, ".so") {
				break
			}
			if p, ok := e.resolveLibrary(candidate); ok {
				e.judgeLibrary(verdict, p.path, fmt.Sprintf("is %s (%s)", p.path, p.how), OK)
				return
			}
		}
		verdict(Fail, "is neither a library on the loader's path nor the X of a libnccl-profiler-X.so there")
	}
}

// judgeLibrary reports whether the library that NCCL would load is this tool's plugin.
func (e *examiner) judgeLibrary(verdict func(Status, string), path, text string, status Status) {
	if text != "" {
		text += "; "
	}
	switch _, err := CheckPlugin(path); {
	case err != nil:
		verdict(Fail, fmt.Sprintf("%s%v", text, err))
	case sameFile(path, e.pluginPath()):
		verdict(status, text+"the plugin of this installation")
	case strings.Contains(filepath.Base(path), "nccl-profiler-otf2"):
		verdict(Warn, text+"another copy of the plugin than that of this installation")
	default:
		verdict(Fail, text+"another profiler plugin; NCCL takes only one")
	}
}

// configuredPlugin looks for the variable in NCCL's own configuration files, which hold NAME=VALUE
// lines. NCCL_CONF_FILE replaces the one in the home folder.
func (e *examiner) configuredPlugin() (value, file string) {
	var files []string
	if f := e.Getenv("NCCL_CONF_FILE"); f != "" {
		files = append(files, f)
	} else if home := e.Getenv("HOME"); home != "" {
		files = append(files, filepath.Join(home, ".nccl.conf"))
	}
	files = append(files, e.pathInRoot("/etc/nccl.conf"))
	for _, path := range slices.Compact(files) {
		f, err := regular.Open(path)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			k, v, ok := strings.Cut(lines.Text(), "=")
			if ok && strings.TrimSpace(k) == "NCCL_PROFILER_PLUGIN" {
				value = strings.TrimSpace(v)
			}
		}
		f.Close()
		if value != "" {
			return value, path
		}
	}
	return "", ""
}

// PluginVersions returns the profiler APIs of a tool's plugin in ascending order; none if it cannot be read.
func PluginVersions(tool string) []int {
	path, err := installed.Library(tool, PluginName)
	if err != nil {
		return nil
	}
	l, err := readLibrary(path)
	if err != nil {
		return nil
	}
	return l.profilerVersions()
}
