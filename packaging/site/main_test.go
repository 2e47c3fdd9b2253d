// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src|srcset)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]*)"`)
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The site of this checkout has a file for each page, and each of its links leads to a file and a place that are there.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if err := build("../..", out); err != nil {
		t.Fatal(err)
	}
	pages := 0
	if err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		pages++
		text := read(t, path)
		for _, m := range reference.FindAllStringSubmatch(
			regexp.MustCompile(`(?s)<(pre|code)>.*?</(pre|code)>`).ReplaceAllString(text, ""), -1) {
			file, place, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || m[1] == "#" {
				continue
			}
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: leads to %s: %v", path, m[1], err)
			} else if place != "" && filepath.Ext(to) == ".html" && !has(read(t, to), place) {
				t.Errorf("%s: there is no %s", path, m[1])
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if sources, err := filepath.Glob(filepath.Join(out, "plugin/api/*.go")); err != nil || len(sources) > 0 {
		t.Errorf("sources that would be built: %q, %v", sources, err)
	}
	if pages < 45 {
		t.Errorf("%d pages", pages)
	}
}

func has(page, id string) bool {
	for _, m := range identity.FindAllStringSubmatch(page, -1) {
		if m[1] == id {
			return true
		}
	}
	return false
}

// asks runs the search over the site's index.
func asks(t *testing.T, out, words string) (found []section) {
	t.Helper()
	node, err := exec.LookPath("node")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal(err)
	case err != nil:
		t.Skip("SKIPPED, NOT TESTED: the search: there is no node")
	}
	script := read(t, filepath.Join(out, "index.js")) + read(t, filepath.Join(out, "search.js")) +
		"console.log(JSON.stringify(find(sections, process.argv[2], 5)));"
	path := filepath.Join(t.TempDir(), "ask.js")
	if err := os.WriteFile(path, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(node, path, words).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(said, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// What is asked for is found, in titles first; nothing is found of words that no section has together.
func TestSearch(t *testing.T) {
	out := t.TempDir()
	if err := build("../..", out); err != nil {
		t.Fatal(err)
	}
	for words, page := range map[string]string{
		"job hangs":                    "docs/tutorials/hang.html",
		"NCCL_OTF2_PROFILE_INTERVAL":   "",
		"--nccl-tests":                 "docs/report.html#--nccl-tests",
		"easybuild spack no-such-word": "none",
	} {
		found := asks(t, out, words)
		switch {
		case page == "none" && len(found) > 0 || page != "none" && len(found) == 0:
			t.Errorf("%q finds %v", words, found)
		case page != "" && page != "none" && found[0].Page != page:
			t.Errorf("%q finds %s first, want %s", words, found[0].Page, page)
		}
	}
}
