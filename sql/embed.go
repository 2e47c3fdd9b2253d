// SPDX-License-Identifier: Apache-2.0

// Package sql holds questions about recorded runs as files of SQL that DuckDB and Spark share. Their tables are those
// of docs/tables.md.
package sql

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Query is one question.
type Query struct {
	Name     string // "waits"
	Question string // in one sentence
	Text     string // the SQL, with its comment
}

// All are the questions, by name.
func All() []Query {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // files are part of the program
	}
	var all []Query
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		q := Query{Name: strings.TrimSuffix(e.Name(), path.Ext(e.Name())), Text: string(text)}
		_, rest, _ := strings.Cut(q.Text, "\n-- ")
		q.Question, _, _ = strings.Cut(rest, "\n")
		all = append(all, q)
	}
	return all
}

// Named is the question of a name. The error names those that there are.
func Named(name string) (*Query, error) {
	var names []string
	for _, q := range All() {
		if q.Name == name {
			return &q, nil
		}
		names = append(names, q.Name)
	}
	return nil, fmt.Errorf("there is no query %q; the queries are %s", name, strings.Join(names, ", "))
}
