// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bufio"
	"io"
	"strings"
)

// xmlWriter writes the elements of an anchor, one per line, as the reference writer does: the reader is not a general
// reader of XML. Errors are kept by the buffer until Flush.
type xmlWriter struct{ *bufio.Writer }

func newXMLWriter(w io.Writer) *xmlWriter { return &xmlWriter{bufio.NewWriterSize(w, 16<<10)} }

// entities are all that readers decode, in texts and in values of attributes.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;")

func (x *xmlWriter) raw(s string) { _, _ = x.WriteString(s) }

func (x *xmlWriter) text(s string) { _, _ = entities.WriteString(x, s) }

func (x *xmlWriter) tag(name string, attributes []Attribute, end string) {
	x.raw("<" + name)
	for _, a := range attributes {
		x.raw(" " + a.Key + `="`)
		x.text(a.Value)
		x.raw(`"`)
	}
	x.raw(end)
}

func (x *xmlWriter) open(name string, attributes ...Attribute)  { x.tag(name, attributes, ">\n") }
func (x *xmlWriter) empty(name string, attributes ...Attribute) { x.tag(name, attributes, "/>\n") }
func (x *xmlWriter) close(name string)                          { x.raw("</" + name + ">\n") }

func (x *xmlWriter) leaf(name, text string) {
	x.raw("<" + name + ">")
	x.text(text)
	x.close(name)
}

// attributes writes attributes of the profile's own, which are elements.
func (x *xmlWriter) attributes(list []Attribute) {
	for _, a := range list {
		x.empty("attr", Attribute{"key", a.Key}, Attribute{"value", a.Value})
	}
}

func titled(title string) []Attribute {
	if title == "" {
		return nil
	}
	return []Attribute{{"title", title}}
}
