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
	entries, err := os.ReadDir("page/src")
	testkit.Must(t, err)
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
		if want := fmt.Sprintf(`<meta name="sources" content="sha256:%x">`, hash.Sum(nil)); !strings.Contains(
			string(made), want) {
			t.Errorf("internal/timeline/asset/%s is not made of what is in internal/timeline/page: make page", name)
		}
		// What runs is the committed program, which the policy knows by its hash.
		sum := sha256.Sum256(program)
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(string(made), want) {
			t.Errorf("internal/timeline/asset/%s does not let asset/page.js run: make page", name)
		}
	}
}

// Pages of short runs are the page itself: it stays lighter than it was before it had the answer, charts and tables, as
// program and style lie packed in it.
func TestThePageIsLight(t *testing.T) {
	const most = 98_985
	page, err := withProgram()
	if err != nil || len(page) > most {
		t.Errorf("the page without data has %d bytes, of %d at most: %v", len(page), most, err)
	}
}

// Whatever comes from an archive gets into the page as text: no source knows another way.
func TestPageMakesNoMarkupOfTexts(t *testing.T) {
	files, err := filepath.Glob("page/src/*.ts")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	dangerous := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|javascript:`)
	for _, f := range files {
		b := testkit.Read(t, f)
		if found := dangerous.Find(b); found != nil {
			t.Errorf("%s: %s", f, found)
		}
	}
}

// The page connects to nothing, and runs nothing but its own program.
func TestPolicyOfThePage(t *testing.T) {
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindSubmatch(asset)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'none'", "script-src 'sha256-",
		"style-src 'sha256-", "base-uri 'none'"} {
		if !strings.Contains(string(policy[1]), want) {
			t.Errorf("the policy does not say %s: %s", want, policy[1])
		}
	}
	if strings.Contains(string(policy[1]), "unsafe") {
		t.Errorf("the policy allows too much: %s", policy[1])
	}
}

// The list of the packages that the page is made with names versions and hashes, and no place that they come from.
func TestLockedPackages(t *testing.T) {
	lock := testkit.Read(t, "page/package-lock.json")
	if strings.Contains(string(lock), "://") || strings.Contains(string(lock), `"resolved"`) {
		t.Error("package-lock.json names a registry: .npmrc should keep it from that")
	}
	if strings.Count(string(lock), `"integrity"`) < 2 {
		t.Error("package-lock.json has no hashes")
	}
	list := testkit.Read(t, "page/package.json")
	_, wanted, _ := strings.Cut(string(list), `"devDependencies"`)
	if loose := regexp.MustCompile(`"[\^~><*]`).FindString(wanted); loose != "" || wanted == "" {
		t.Errorf("package.json does not name exact versions: %s", loose)
	}
}
