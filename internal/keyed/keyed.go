// SPDX-License-Identifier: Apache-2.0

// Package keyed has what the standard library does not have for maps: entries that are added when they are first used.
package keyed

// Entry returns the value of a key, and adds a new one if there is none.
func Entry[K comparable, V any](all map[K]*V, key K) *V {
	return EntryMade(all, key, func() *V { return new(V) })
}

// EntryMade returns the value of a key, and adds what a function makes if there is none.
func EntryMade[K comparable, V any](all map[K]V, key K, add func() V) V {
	v, has := all[key]
	if !has {
		v = add()
		all[key] = v
	}
	return v
}

// Map returns the map of a key, and adds an empty one if there is none.
func Map[K, L comparable, V any](all map[K]map[L]V, key K) map[L]V {
	return EntryMade(all, key, func() map[L]V { return make(map[L]V) })
}
