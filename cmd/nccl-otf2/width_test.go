// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// On a terminal the report's tables fit its width, and say what there was no room for.
func TestReportFitsTheTerminal(t *testing.T) {
	s := startOnTerminal(t, 100, 40, "report", "../../tests/jobtest/testdata/scalasca-min/traces.otf2")
	text := s.until("the table of waiting", func(drawn string) bool { return strings.Contains(drawn, "Who waited") })
	var table []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if len(table) > 0 && line == "" {
			break
		}
		if len(table) > 0 || strings.HasPrefix(line, "communicator ") {
			table = append(table, line)
		}
	}
	testkit.Require(t, len(table) >= 3 &&
		strings.Contains(strings.Join(table, "\n"), "terminal too narrow for: likely role"), "%q in\n%s", table, text)
	for _, line := range table[:2] {
		n := utf8.RuneCountInString(line)
		testkit.Check(t, n <= 100, "%d characters: %q", n, line)
	}
}
