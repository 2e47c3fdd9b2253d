// SPDX-License-Identifier: Apache-2.0

// Package measure has what the benchmarks share: where they work, how they write figures, and how tables get into a
// page.
package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// workFolder makes a folder below the parent; without one in memory if there is room, else in the temporary folder.
func workFolder(parent string) (string, error) {
	const memory, room = "/dev/shm", 1 << 30
	var s unix.Statfs_t
	if parent == "" && unix.Statfs(memory, &s) == nil && s.Bavail*uint64(s.Bsize) >= room {
		parent = memory
	}
	return os.MkdirTemp(parent, "nccl-otf2-bench-")
}

// Machine describes the machine and how busy it is.
func Machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d × %s, %s, load average at the beginning %s", runtime.NumCPU(), model, runtime.GOARCH, load)
}

// Digits writes three significant digits, and no fewer than those before the point.
func Digits(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// splice returns the text of a page with what stands between the lines <!-- NAME:begin --> and <!-- NAME:end -->
// replaced.
func splice(path, name, table string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has no lines %s and %s", path, begin, end)
	}
	return before + begin + "\n" + strings.TrimSpace(table) + "\n" + end + after, nil
}
