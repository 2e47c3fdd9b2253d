/* SPDX-License-Identifier: Apache-2.0
 *
 * rccl.h asks for it and uses hipStream_t alone, which for our stand-in is CUDA's.
 */
#ifndef REALNCCL_HIP_RUNTIME_H
#define REALNCCL_HIP_RUNTIME_H

#include <cuda_runtime.h>

typedef cudaStream_t hipStream_t;

#endif
