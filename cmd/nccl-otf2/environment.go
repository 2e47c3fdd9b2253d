// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// environment is a list of NAME=VALUE strings with unique names.
type environment struct{ vars []string }

func newEnvironment(vars []string) *environment {
	e := &environment{}
	for _, v := range vars {
		name, value, ok := strings.Cut(v, "=")
		if ok && name != "" {
			e.set(name, value)
		}
	}
	return e
}

func (e *environment) set(name, value string) {
	e.vars = slices.DeleteFunc(e.vars, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	e.vars = append(e.vars, name+"="+value)
}

// extend appends a value to a variable that holds a list.
func (e *environment) extend(name, separator, value string) {
	if old := e.get(name); old != "" {
		value = old + separator + value
	}
	e.set(name, value)
}

// lookup is os.LookupEnv for this environment.
func (e *environment) lookup(name string) (string, bool) {
	for _, v := range e.vars {
		if n, value, _ := strings.Cut(v, "="); n == name {
			return value, true
		}
	}
	return "", false
}

func (e *environment) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

func (e *environment) names() []string {
	names := make([]string, len(e.vars))
	for i, v := range e.vars {
		names[i], _, _ = strings.Cut(v, "=")
	}
	return names
}

func (e *environment) list() []string { return e.vars }
