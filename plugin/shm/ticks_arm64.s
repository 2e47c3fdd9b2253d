// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func counter() uint64
// The barriers keep the reading between the readings of the other clocks.
TEXT ·counter(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	ISB  $15
	MOVD R0, ret+0(FP)
	RET
