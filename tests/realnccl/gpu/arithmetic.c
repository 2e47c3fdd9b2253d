/* SPDX-License-Identifier: Apache-2.0 */
#include "arithmetic.h"

#include <string.h>

size_t element_bytes(enum element e)
{
  static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 1};
  return bytes[e];
}

/* Numbers of 16 bits are reduced as floats and rounded each time, as the GPU does. */
static float of_half(uint16_t h)
{
  _Float16 f;
  memcpy(&f, &h, sizeof f);
  return (float)f;
}

static uint16_t to_half(float x)
{
  _Float16 f = (_Float16)x;
  uint16_t h;
  memcpy(&h, &f, sizeof h);
  return h;
}

static float of_bfloat(uint16_t b)
{
  uint32_t word = (uint32_t)b << 16;
  float f;
  memcpy(&f, &word, sizeof f);
  return f;
}

static uint16_t to_bfloat(float x)
{
  uint32_t word;
  memcpy(&word, &x, sizeof word);
  return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

static float of_float(float x) { return x; }
static double of_double(double x) { return x; }

/* Fractions: WIDE is what is calculated in. The operand's lowest bit says minimum (0) or maximum. */
#define FRACTIONS(T, WIDE, OF, TO)                                                                                     \
  static void combine_##OF(enum operation o, uint64_t operand, T *into, const T *from, size_t count)                   \
  {                                                                                                                    \
    for (size_t i = 0; i < count; i++) {                                                                               \
      WIDE a = OF(into[i]), b = OF(from[i]);                                                                           \
      into[i] = TO(o == PROD ? a * b : o != MIN_MAX ? a + b : (operand & 1) == 0 ? (a < b ? a : b) : (a > b ? a : b)); \
    }                                                                                                                  \
  }                                                                                                                    \
  static void scale_##OF(uint64_t operand, T *numbers, size_t count)                                                   \
  {                                                                                                                    \
    T bits;                                                                                                            \
    memcpy(&bits, &operand, sizeof bits);                                                                              \
    for (size_t i = 0; i < count; i++) numbers[i] = TO(OF(numbers[i]) * OF(bits));                                     \
  }
FRACTIONS(uint16_t, float, of_half, to_half)
FRACTIONS(uint16_t, float, of_bfloat, to_bfloat)
FRACTIONS(float, float, of_float, of_float)
FRACTIONS(double, double, of_double, of_double)

/* Integers: sums and products do not know of signs; for minimum and maximum the operand is what makes them comparable. */
#define INTEGERS(T)                                                                                         \
  static void combine_##T(enum operation o, uint64_t operand, T *into, const T *from, size_t count)         \
  {                                                                                                         \
    const T mask = (T)operand;                                                                              \
    for (size_t i = 0; i < count; i++) {                                                                    \
      T a = into[i], b = from[i];                                                                           \
      into[i] = o == PROD ? (T)(a * b) : o != MIN_MAX ? (T)(a + b) : (T)(a ^ mask) < (T)(b ^ mask) ? a : b; \
    }                                                                                                       \
  }                                                                                                         \
  static void scale_##T(uint64_t operand, T *numbers, size_t count)                                         \
  {                                                                                                         \
    for (size_t i = 0; i < count; i++) numbers[i] = (T)(numbers[i] * (T)operand);                           \
  }
INTEGERS(uint8_t)
INTEGERS(uint32_t)
INTEGERS(uint64_t)

void combine(enum element e, enum operation o, uint64_t operand, void *into, const void *from, size_t count)
{
  switch (e) {
  case I8:
  case U8:
  case NO_ELEMENT: combine_uint8_t(o, operand, into, from, count); break;
  case I32:
  case U32: combine_uint32_t(o, operand, into, from, count); break;
  case I64:
  case U64: combine_uint64_t(o, operand, into, from, count); break;
  case F16: combine_of_half(o, operand, into, from, count); break;
  case BF16: combine_of_bfloat(o, operand, into, from, count); break;
  case F32: combine_of_float(o, operand, into, from, count); break;
  case F64: combine_of_double(o, operand, into, from, count); break;
  case F8E4M3:
  case F8E5M2: break;
  }
}

void before_all(enum element e, enum operation o, uint64_t operand, void *numbers, size_t count)
{
  if (o != PRE_MUL_SUM) return;
  switch (e) {
  case I8:
  case U8:
  case NO_ELEMENT: scale_uint8_t(operand, numbers, count); break;
  case I32:
  case U32: scale_uint32_t(operand, numbers, count); break;
  case I64:
  case U64: scale_uint64_t(operand, numbers, count); break;
  case F16: scale_of_half(operand, numbers, count); break;
  case BF16: scale_of_bfloat(operand, numbers, count); break;
  case F32: scale_of_float(operand, numbers, count); break;
  case F64: scale_of_double(operand, numbers, count); break;
  case F8E4M3:
  case F8E5M2: break;
  }
}

#define DIVIDE(T, divisor) \
  for (size_t i = 0; i < count; i++) ((T *)numbers)[i] = (T)(((T *)numbers)[i] / (T)(divisor))

/* The operand: the number of ranks, shifted by one; its lowest bit says whether the numbers have a sign. */
void after_all(enum element e, enum operation o, uint64_t operand, void *numbers, size_t count)
{
  const uint32_t ranks = (uint32_t)(operand >> 1);
  if (o != SUM_POST_DIV || !ranks) return;
  const int is_signed = operand & 1;
  switch (element_bytes(e)) {
  case 1:
    if (is_signed) DIVIDE(int8_t, ranks);
    else DIVIDE(uint8_t, ranks);
    break;
  case 4:
    if (is_signed) DIVIDE(int32_t, ranks);
    else DIVIDE(uint32_t, ranks);
    break;
  case 8:
    if (is_signed) DIVIDE(int64_t, ranks);
    else DIVIDE(uint64_t, ranks);
    break;
  }
}
