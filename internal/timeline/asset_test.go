// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The committed page is what its sources give: it names their hash. (That it would be made alike again `make
// page-check` says, where there is node.)
func TestAssetIsMadeOfItsSources(t *testing.T) {
	names := []string{"build.mjs", "package-lock.json", "package.json", "tsconfig.json"}
	entries := testkit.Value(os.ReadDir("page/src"))(t)
	for _, e := range entries {
		names = append(names, "src/"+e.Name())
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		content := testkit.Read(t, filepath.Join("page", name))
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	for name, made := range map[string][]byte{"page.html": asset, "beside.html": besideAsset} {
		testkit.Check(t,
			strings.Contains(string(made), fmt.Sprintf(`<meta name="sources" content="sha256:%x">`, hash.Sum(nil))),
			"internal/timeline/asset/%s is not made of what is in internal/timeline/page: make page", name)
		// What runs is the committed program, which the policy knows by its hash.
		sum := sha256.Sum256(program)
		testkit.Check(t, strings.Contains(string(made), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'"),
			"internal/timeline/asset/%s does not let asset/page.js run: make page", name)
	}
}

// Pages of short runs are the page itself: it stays lighter than it was before it had the answer, charts and tables, as
// program and style lie packed in it.
func TestThePageIsLight(t *testing.T) {
	const most = 98_985
	page, err := withProgram()
	testkit.Check(t, err == nil && len(page) <= most,
		"the page without data has %d bytes, of %d at most: %v", len(page), most, err)
}

// Whatever comes from an archive gets into the page as text: no source knows another way.
func TestPageMakesNoMarkupOfTexts(t *testing.T) {
	files, err := filepath.Glob("page/src/*.ts")
	testkit.Require(t, err == nil && len(files) >= 10, "%v %v", files, err)
	dangerous := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|javascript:`)
	for _, f := range files {
		b := testkit.Read(t, f)
		found := dangerous.Find(b)
		testkit.Check(t, found == nil, "%s: %s", f, found)
	}
}

// The page connects to nothing, and runs nothing but its own program.
func TestPolicyOfThePage(t *testing.T) {
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindSubmatch(asset)
	testkit.Require(t, policy != nil, "the page has no policy")
	for _, want := range []string{"default-src 'none'", "connect-src 'none'", "script-src 'sha256-",
		"style-src 'sha256-", "base-uri 'none'"} {
		testkit.Check(t, strings.Contains(string(policy[1]), want), "the policy does not say %s: %s", want, policy[1])
	}
	testkit.Check(t, !strings.Contains(string(policy[1]), "unsafe"), "the policy allows too much: %s", policy[1])
}

// The list of the packages that the page is made with names versions and hashes, and no place that they come from.
func TestLockedPackages(t *testing.T) {
	lock := testkit.Read(t, "page/package-lock.json")
	testkit.Check(t, !strings.Contains(string(lock), "://") && !strings.Contains(string(lock), `"resolved"`),
		"package-lock.json names a registry: .npmrc should keep it from that")
	testkit.Check(t, strings.Count(string(lock), `"integrity"`) >= 2, "package-lock.json has no hashes")
	list := testkit.Read(t, "page/package.json")
	_, wanted, _ := strings.Cut(string(list), `"devDependencies"`)
	loose := regexp.MustCompile(`"[\^~><*]`).FindString(wanted)
	testkit.Check(t, loose == "" && wanted != "", "package.json does not name exact versions: %s", loose)
}
