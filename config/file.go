// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// maxFile is the maximum size of a settings file in bytes: parsers need many times its size in memory.
const maxFile = 1 << 20

// readFile passes the values of a settings file to viper, except for blank ones. Keys that viper would ignore are
// errors: unknown ones, and keys that differ only in case.
func readFile(v *viper.Viper, path string) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if !slices.Contains([]string{"yaml", "yml", "toml", "json"}, format) {
		return fmt.Errorf("%sCONFIG=%s: the name must end in .yaml, .toml or .json", Prefix, path)
	}
	text, err := regular.Read(path, maxFile)
	if err != nil {
		return fmt.Errorf("%sCONFIG: %w", Prefix, err)
	}
	content, err := decodeFile(format, text)
	if err != nil {
		return fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}

	values := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(content)) {
		name := lowerASCII(key)
		if table, ok := content[key].(map[string]any); ok && len(table) > 0 {
			name += "." + lowerASCII(slices.Min(slices.Collect(maps.Keys(table))))
		}
		row := lookupSetting(name)
		switch {
		case row == nil:
			return fmt.Errorf("%s: unknown setting %q%s", path, name, suggestKey(name))
		case row.Key == "CONFIG":
			return fmt.Errorf("%s: %q cannot be set in a file", path, name)
		}
		if _, twice := values[row.Key]; twice {
			return fmt.Errorf("%s: %q is there twice", path, name)
		}
		values[row.Key] = content[key]
	}
	maps.DeleteFunc(values, func(_ string, value any) bool {
		text, err := plainText(value)
		return err == nil && trimBlanks(text) == ""
	})
	return v.MergeConfigMap(values)
}

// decodeFile reads a settings file with viper's decoder for its format. It keeps numbers in JSON as they are written,
// which the decoder would round to float64.
func decodeFile(format string, text []byte) (map[string]any, error) {
	content := make(map[string]any)
	if format == "json" {
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		isObject := json.Unmarshal(text, &map[string]json.RawMessage{}) // without trailing data
		return content, cmp.Or(isObject, numbers.Decode(&content))
	}
	decoder, err := viper.NewCodecRegistry().Decoder(format)
	if err != nil {
		return nil, err
	}
	return content, decoder.Decode(text, content)
}

// plainText converts a value of a settings file to the text that a variable would have. Lists are joined by commas.
func plainText(value any) (string, error) {
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
			if parts[i], err = plainText(v[i]); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("a %T cannot be the value of a setting", value)
}
