// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// maxFile bounds a settings file (bytes): parsers take many times its size in memory.
const maxFile = 1 << 20

// formats are those of settings files, by how their names end.
var formats = map[string]func(text []byte, into *map[string]any) error{
	".yaml": func(text []byte, into *map[string]any) error { return yaml.Unmarshal(text, into) },
	".yml":  func(text []byte, into *map[string]any) error { return yaml.Unmarshal(text, into) },
	".toml": func(text []byte, into *map[string]any) error { return toml.Unmarshal(text, into) },
	".json": readJSON,
}

// readJSON leaves numbers as they are written.
func readJSON(text []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the object")
	}
	return nil
}

// readFile gives the values of a settings file by their settings' keys, and refuses keys that are no settings. Whether
// letters are small or capital makes no difference.
func readFile(path string) (map[string]any, error) {
	read := formats[strings.ToLower(filepath.Ext(path))]
	if read == nil {
		return nil, fmt.Errorf("%sCONFIG=%s: the name must end in .yaml, .toml or .json", Prefix, path)
	}
	text, err := regular.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%sCONFIG: %w", Prefix, err)
	}
	var content map[string]any
	if err := read(text, &content); err != nil {
		return nil, fmt.Errorf("%s: %s", path, oneLine(err.Error()))
	}
	flat := make(map[string]any)
	flatten(flat, "", content)
	values := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		row := lookupSetting(key)
		switch {
		case row == nil:
			return nil, fmt.Errorf("%s: unknown setting %q%s", path, strings.ToLower(key), suggestion(key))
		case row.Key == "CONFIG":
			return nil, fmt.Errorf("%s: %q cannot be set in a file", path, strings.ToLower(key))
		}
		if _, twice := values[row.Key]; twice {
			return nil, fmt.Errorf("%s: %q is there twice", path, strings.ToLower(key))
		}
		values[row.Key] = flat[key]
	}
	return values, nil
}

// flatten names what is in tables by the way there: "events.gpu".
func flatten(into map[string]any, prefix string, table map[string]any) {
	for key, value := range table {
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			flatten(into, prefix+key+".", inner)
		} else {
			into[prefix+key] = value
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plain is a value of a settings file as the text that a variable would have. Lists are joined by
// commas.
func plain(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool, int, int64, uint64, float64, json.Number:
		return fmt.Sprint(v), nil
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			var err error
			if parts[i], err = plain(v[i]); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("a %T cannot be the value of a setting", value)
}
