// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// ParadigmNCCL is the paradigm of communicators in archives that have others' of MPI, too: each paradigm has one list
// of locations, and no release of OTF2 has a value for NCCL. This one is defined since OTF2 1.4, is of processes that
// communicate, and Score-P writes none; the archive's Paradigm definition names it NCCL, as readers show it. Values
// that OTF2 does not define are INVALID to otf2-print, and a KeyError where the Python bindings name them.
const ParadigmNCCL = otf2.ParadigmGASPI

// formerParadigmNCCL was that value in archives of earlier versions.
const formerParadigmNCCL otf2.Paradigm = 200

// IsParadigmNCCL reports whether a paradigm is that of NCCL's communicators in an archive of ours.
func IsParadigmNCCL(p otf2.Paradigm) bool { return p == ParadigmNCCL || p == formerParadigmNCCL }
