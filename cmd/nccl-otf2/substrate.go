// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/config"
)

// Score-P's variables for the substrate plugins to load and for the separator between them, and the name of ours, which
// Score-P loads as libscorep_substrate_nccl_otf2.so from the loader's search path.
const (
	substratePlugins   = "SCOREP_SUBSTRATE_PLUGINS"
	substrateSeparator = "SCOREP_SUBSTRATE_PLUGINS_SEP"
	substrateName      = "nccl_otf2"
	substrateLibrary   = "libscorep_substrate_" + substrateName + ".so"
	libraryPath        = "LD_LIBRARY_PATH"
)

// ensureSubstrate makes a job that Score-P measures load our substrate plugin (docs/scorep.md). Plugins that the user
// has set stay in front; an empty list means that the user wants none. It returns a message, "" if nothing was changed.
func ensureSubstrate(env *environment) string {
	plugins, set := env.lookup(substratePlugins)
	if !expectsScorep(env) || set && plugins == "" {
		return ""
	}
	library, err := ownLibrary(substrateLibrary)
	if err != nil {
		return ""
	}
	if err := doctor.CheckLibrary(library); err != nil {
		return fmt.Sprintf("Score-P's pauses will not be followed: %s %v: install it anew", library, err)
	}
	separator := cmp.Or(env.get(substrateSeparator), ",")
	var said []string
	if names := strings.Split(plugins, separator); !slices.ContainsFunc(
		names, func(name string) bool { return strings.TrimSpace(name) == substrateName }) {
		env.extend(substratePlugins, separator, substrateName)
		said = append(said, substratePlugins+"="+env.get(substratePlugins)+" is set")
	}
	folders := filepath.SplitList(env.get(libraryPath))
	if !slices.ContainsFunc(folders, func(folder string) bool {
		return isFile(filepath.Join(folder, substrateLibrary))
	}) {
		env.extend(libraryPath, ":", filepath.Dir(library))
		said = append(said, filepath.Dir(library)+" added to "+libraryPath)
	}
	if len(said) == 0 || config.FindLauncher(env.lookup).Rank > 0 {
		return ""
	}
	return strings.Join(said, ", ") + ": where Score-P pauses, NCCL's recording does, too"
}
