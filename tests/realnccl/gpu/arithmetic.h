/* SPDX-License-Identifier: Apache-2.0
 *
 * What reductions do to elements. The operand is NCCL's: a scalar's bits for PRE_MUL_SUM, 2·ranks for SUM_POST_DIV, a mask that
 * turns maximum into minimum for MIN_MAX.
 */
#ifndef REALNCCL_ARITHMETIC_H
#define REALNCCL_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

#include "functions.h"

size_t element_bytes(enum element e);

/* Two numbers into the first of them. Elements of 8 bits with a fraction are added as they are on no GPU: they are left alone.
 */
void combine(enum element e, enum operation o, uint64_t operand, void *into, const void *from, size_t count);

/* What is done to a rank's own numbers before, and to the result after. */
void before_all(enum element e, enum operation o, uint64_t operand, void *numbers, size_t count);
void after_all(enum element e, enum operation o, uint64_t operand, void *numbers, size_t count);

#endif
