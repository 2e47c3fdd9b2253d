// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// schema is the version of the JSON output of commands, written as its member "schema". It increases when a member is
// renamed, removed or redefined; new members do not change it.
const schema = 1

// WriteJSON writes an object as JSON with a newline. The first member is the version of the schema, unless the object
// begins with a version of its own. indent is the indentation of each level; "": one line.
func WriteJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	members, isObject := bytes.CutPrefix(text.Bytes(), []byte("{"))
	if !isObject {
		return fmt.Errorf("%T is not a JSON object", v)
	}
	if bytes.HasPrefix(bytes.TrimSpace(members), []byte(`"schema":`)) {
		_, err := w.Write(text.Bytes())
		return err
	}
	head := "{"
	if indent != "" {
		head += "\n" + indent + `"schema": `
	} else {
		head += `"schema":`
	}
	head += fmt.Sprint(schema)
	switch {
	case !bytes.HasPrefix(members, []byte("}")):
		head += ","
	case indent != "":
		head += "\n"
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	_, err := w.Write(members)
	return err
}
