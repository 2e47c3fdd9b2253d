// SPDX-License-Identifier: Apache-2.0

// Package sql embeds questions about recorded runs as SQL files for DuckDB and Spark. docs/tables.md defines their
// tables.
package sql

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Query is a question and its SQL.
type Query struct {
	Name     string // "waits"
	Question string // in one sentence
	Text     string // the SQL, with its comment
}

// All returns the questions, sorted by name.
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

// Named returns the question of a name. The error lists the known names.
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
