// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const someTests = `package p

import "testing"

func TestPasses(t *testing.T) { t.Log("quiet"); t.Run("part", func(t *testing.T) { t.Log("NOT CHECKED: the other half") }) }
func TestFails(t *testing.T)  { t.Log("loud"); t.Run("sub", func(t *testing.T) { t.Error("wrong") }) }
func TestSkips(t *testing.T)  { t.Skip("SKIPPED, NOT TESTED: needed: a thing") }
func TestHalf(t *testing.T)   { t.Run("sub", func(t *testing.T) { t.Skip("takes\nlong") }) }
`

// What go test writes is written as it would be without -json, and what was left out is known, also of results that go
// test has kept.
func TestRelay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"q", "broken", "none"} {
		testkit.Must(t, os.Mkdir(filepath.Join(dir, name), 0o777))
	}
	testkit.Write(t, filepath.Join(dir, "go.mod"), []byte("module example.org/p\n\ngo 1.24\n"))
	testkit.Write(t, filepath.Join(dir, "p_test.go"), []byte(someTests))
	testkit.Write(t, filepath.Join(dir, "q", "q_test.go"),
		[]byte(strings.Replace(someTests, `t.Error("wrong")`, "", 1)))
	testkit.Write(t, filepath.Join(dir, "broken", "b_test.go"), []byte("package b\n\nvar x int = \"\"\n"))
	testkit.Write(t, filepath.Join(dir, "none", "n.go"), []byte("package none\n"))
	run := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"test"}, args...)...)
		cmd.Dir = dir
		// With the flags of this test, else all of Go would be compiled anew.
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -vet=off", "GOWORK=off")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // fails, as tests do
		return out.String()
	}
	times := regexp.MustCompile(`\s*(\(?\d+\.\d+s\)?|\(cached\))`)
	lines := func(s string) map[string]int { // packages, and tests in them, may come in any order
		n := make(map[string]int)
		for line := range strings.Lines(times.ReplaceAllString(s, "")) {
			n[strings.TrimSpace(line)]++
		}
		return n
	}
	want := lines(run("./..."))
	for range 2 { // the second result of q is a kept one
		var out bytes.Buffer
		skipped := testkit.Value(relay(strings.NewReader(run("-json", "./...")), &out))(t)
		got := lines(out.String())
		for line, n := range want {
			testkit.Check(t, got[line] == n, "%q is written %d times, want %d:\n%s", line, got[line], n, out.String())
		}
		for line, n := range got {
			testkit.Equal(t, want[line], n, "%q is written %d times, want", line, n)
		}
		all := strings.Join(skipped, "\n")
		for _, part := range []string{"p", "p/q"} {
			for _, line := range []string{
				"TestPasses/part: NOT CHECKED: the other half", "TestSkips: SKIPPED, NOT TESTED: needed: a thing",
				"TestHalf/sub: takes long",
			} {
				testkit.Equal(t, strings.Count(all, "example.org/"+part+" "+line), 1, "%s %s is not among\n%s", part,
					line, all)
			}
		}
		testkit.Equal(t, len(skipped), 6, "lines:\n%s", all)
	}
}

// A program that ends in the middle of a test has written why.
func TestRelayOfWhatWasEnded(t *testing.T) {
	var out bytes.Buffer
	skipped, err := relay(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestX","Output":"panic: gone\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t1s\n"}
{"Action":"fail","Package":"p"}
go: no more
{"Action":"output","Package":"q","Test":"TestY","Output":"half a"}
`), &out)
	testkit.Check(t, err == nil && len(skipped) == 0 &&
		out.String() == "panic: gone\nFAIL\tp\t1s\ngo: no more\nhalf aFAIL\n", "%v, %q: %q", err, skipped, out.String())
}

func TestList(t *testing.T) {
	file, log := filepath.Join(t.TempDir(), "skipped"), filepath.Join(t.TempDir(), "log")
	testkit.Write(t, log, []byte("ok  p 1s\nℹ skipped 0\n# skipped 0\n"))
	var out bytes.Buffer
	testkit.Must(t, writeList(&out, file, []string{log}))
	testkit.Equal(t, out.String(), "nothing was skipped\n", "out.String()")
	testkit.Write(t, file, []byte("q TestB: why\np TestA: because\nq TestB: why\n"))
	testkit.Write(
		t, log, []byte(
			"ok  p 1s\nsetup: NOT CHECKED: a tool\n    x_test.go:4: SKIPPED: no terminal\nℹ skipped 2\n--- SKIP: "+
				"TestReal (0.00s)\n"))
	out.Reset()
	testkit.Must(t, writeList(&out, file, []string{log}))
	want := "skipped: 6\n  --- SKIP: TestReal (0.00s)\n  SKIPPED: no terminal\n  p TestA: because\n  q TestB: why\n  " +
		"setup: NOT CHECKED: a tool\n  ℹ skipped 2\n"
	testkit.Equal(t, out.String(), want, "out.String()")
}
