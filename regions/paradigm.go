// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// ParadigmNCCL is the paradigm of communicators if asked for: no OTF2 release has a value for NCCL,
// and readers show the name that the archive's Paradigm definition gives it.
const ParadigmNCCL otf2.Paradigm = 200
