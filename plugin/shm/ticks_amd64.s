// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func counter() uint64
// The fences keep the reading between the readings of the other clocks.
TEXT ·counter(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	LFENCE
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
