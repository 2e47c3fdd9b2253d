// SPDX-License-Identifier: Apache-2.0

package cube

import "io"

const (
	memberAnchor = "anchor.xml"
	xmlHead      = `<?xml version="1.0" encoding="UTF-8"?>`
	cubePL       = "1.1" // version of the language of expressions

	versionPlain       = "4.4"
	versionAccelerator = "4.7" // for profiles with accelerators; there is no 4.6
)

// versions are those that readers take; 3.0 has its values in the anchor.
var versions = []string{"4.0", "4.1", "4.2", "4.3", versionPlain, "4.5", versionAccelerator}

// writeAnchor writes the definitions as anchor.xml.
func (d *Definitions) writeAnchor(w io.Writer) error {
	x := newXMLWriter(w)
	version := versionPlain
	if d.accelerated() {
		version = versionAccelerator
	}
	x.raw(xmlHead + "\n\n")
	x.open("cube", Attribute{"version", version})
	x.attributes([]Attribute{{AttributeCubePLVersion, cubePL}, {AttributeAnchorVersion, version}})
	for _, a := range d.Attributes {
		if a.Key != AttributeCubePLVersion && a.Key != AttributeAnchorVersion {
			x.attributes([]Attribute{a})
		}
	}
	x.open("doc")
	x.open("mirrors")
	for _, m := range d.Mirrors {
		x.leaf("murl", m)
	}
	x.close("mirrors")
	x.close("doc")
	d.writeMetrics(x)
	x.open("program", titled(d.ProgramTitle)...)
	d.writeRegions(x)
	d.writeCallTree(x)
	x.close("program")
	x.open("system", titled(d.SystemTitle)...)
	d.writeSystem(x)
	x.close("system")
	x.close("cube")
	return x.Flush()
}
