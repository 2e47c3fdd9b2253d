// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// ParadigmNCCL is the paradigm of NCCL's communicators in archives that also have MPI's: each paradigm has one list of
// locations, and no release of OTF2 has a value for NCCL. This value exists since OTF2 1.4, is for processes that
// communicate, and Score-P does not write it; the archive's Paradigm definition names it NCCL, and readers show that
// name. A value that OTF2 does not define is INVALID to otf2-print and a KeyError in the Python bindings.
const ParadigmNCCL = otf2.ParadigmGASPI

// formerParadigmNCCL is the value in archives of earlier versions.
const formerParadigmNCCL otf2.Paradigm = 200

// IsParadigmNCCL reports whether a paradigm is that of NCCL's communicators in an archive of this project.
func IsParadigmNCCL(p otf2.Paradigm) bool { return p == ParadigmNCCL || p == formerParadigmNCCL }
