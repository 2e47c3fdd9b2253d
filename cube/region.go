// SPDX-License-Identifier: Apache-2.0

package cube

import "fmt"

// Region is a piece of code that cnodes call.
type Region struct {
	Name        string
	MangledName string // empty: Name
	Paradigm    string // Score-P's, "libwrap:nccl" for instance. Empty: "unknown"
	Role        string // Score-P's, "function" for instance. Empty: "unknown"
	Module      string // source file, or what the code belongs to
	Begin, End  int    // lines, below 1 unknown
	URL         string
	Description string
	Attributes  []Attribute
}

// Names of paradigms and roles that tools look for; any other text is taken.
const (
	ParadigmMeasurement = "measurement" // the program as a whole; scorep-score leaves these out
	ParadigmCUDA        = "cuda"
	RoleArtificial      = "artificial" // not code, but a heading: the program, "KERNELS"
	RoleFunction        = "function"
	ModuleKernel        = "CUDA_KERNEL" // Region.Module of device kernels, by which cube_remap2 knows them
	unknown             = "unknown"
)

// AttributeArguments is the number of the program's arguments, at the region of the program.
const AttributeArguments = "Score-P::ProgramArguments::numberOfArguments"

func (d *Definitions) checkRegions() error {
	if len(d.Regions) == 0 {
		return invalid("there is no region: readers refuse such a profile")
	}
	for i := range d.Regions {
		r := &d.Regions[i]
		owner := fmt.Sprintf("region %d %q", i, r.Name)
		if r.Name == "" {
			return invalid("%s has no name", owner)
		}
		if err := checkTexts(owner, r.Name, r.MangledName, r.Paradigm, r.Role, r.Module, r.URL,
			r.Description); err != nil {
			return err
		}
		if err := checkAttributes(owner, r.Attributes); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definitions) writeRegions(x *xmlWriter) {
	for i := range d.Regions {
		r := &d.Regions[i]
		x.open("region", Attribute{"id", fmt.Sprint(i)}, Attribute{"mod", r.Module},
			Attribute{"begin", line(r.Begin)}, Attribute{"end", line(r.End)})
		x.leaf("name", r.Name)
		x.leaf("mangled_name", orElse(r.MangledName, r.Name))
		x.leaf("paradigm", orElse(r.Paradigm, unknown))
		x.leaf("role", orElse(r.Role, unknown))
		x.leaf("url", r.URL)
		x.leaf("descr", r.Description)
		x.attributes(r.Attributes)
		x.close("region")
	}
}

// line writes unknown lines as the reference writer does.
func line(n int) string {
	if n <= 0 {
		return "-1"
	}
	return fmt.Sprint(n)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
