// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"regexp"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The tool's version is the one that the Python package and the newest release of CHANGELOG.md have.
func TestVersionsAgree(t *testing.T) {
	version := func(path, pattern string) string {
		m := regexp.MustCompile(pattern).FindSubmatch(testkit.Read(t, path))
		testkit.Require(t, m != nil, "%s has no %s", path, pattern)
		return string(m[1])
	}
	tool := version("../cmd/nccl-otf2/version.go", `toolVersion = "([^"]+)"`)
	for path, pattern := range map[string]string{
		"../python/pyproject.toml": `(?m)^version = "([^"]+)"`,
		"../CHANGELOG.md":          `(?m)^## (\d\S*)`,
	} {
		got := version(path, pattern)
		testkit.Check(t, got == tool, "%s says %s, the tool %s", path, got, tool)
	}
}
