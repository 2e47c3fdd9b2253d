// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// writers are the forms of results, by name.
var writers = map[string]func(w io.Writer, columns []string, rows [][]any) error{"table": writeTable, "csv": writeCSV,
	"json": writeJSON}

// writeTable aligns the columns for people; numbers with a fraction have six digits.
func writeTable(w io.Writer, columns []string, rows [][]any) error {
	head := make([]string, len(columns))
	for i, name := range columns {
		head[i] = printable(name)
	}
	lines := [][]string{head}
	for _, row := range rows {
		line := make([]string, len(row))
		for i, v := range row {
			if f, is := v.(float64); is {
				line[i] = strconv.FormatFloat(f, 'g', 6, 64)
			} else {
				line[i] = printable(text(v))
			}
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(columns))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// printable shows what terminals would take for commands.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// cell is a text as spreadsheets may have it: behind an apostrophe where they would calculate it as a formula, as in
// all comma-separated values of the tool. JSON and Parquet have texts as they are.
func cell(s string) string {
	s = printable(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

func writeCSV(w io.Writer, columns []string, rows [][]any) error {
	c := csv.NewWriter(w)
	head := make([]string, len(columns))
	for i, name := range columns {
		head[i] = cell(name)
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for _, row := range rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cell(text(v))
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeJSON writes a list of objects, their members in the order of the columns.
func writeJSON(w io.Writer, columns []string, rows [][]any) error {
	separator := "[\n"
	for _, row := range rows {
		if _, err := io.WriteString(w, separator+" {"); err != nil {
			return err
		}
		for i, v := range row {
			name, err := json.Marshal(columns[i])
			if err != nil {
				return err
			}
			value, err := json.Marshal(plain(v))
			if err != nil {
				return err
			}
			comma := ", "
			if i == 0 {
				comma = ""
			}
			if _, err := fmt.Fprintf(w, "%s%s: %s", comma, name, value); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, "}"); err != nil {
			return err
		}
		separator = ",\n"
	}
	if len(rows) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	_, err := io.WriteString(w, "\n]\n")
	return err
}

// plain is a value as JSON has it: numbers that are none are null, times are texts.
func plain(v any) any {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	case time.Time:
		return text(x)
	case []byte:
		return string(x)
	}
	return v
}

func text(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case time.Time:
		if x.Equal(x.Truncate(24 * time.Hour)) {
			return x.Format(time.DateOnly)
		}
		return x.Format("2006-01-02 15:04:05.999999999")
	case []byte:
		return string(x)
	}
	return fmt.Sprint(v)
}
