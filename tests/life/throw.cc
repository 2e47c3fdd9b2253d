// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

extern "C" void throw_uncaught();
extern "C" void throw_uncaught() { throw std::runtime_error("nobody catches this"); }
