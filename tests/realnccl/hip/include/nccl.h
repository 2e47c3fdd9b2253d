/* SPDX-License-Identifier: Apache-2.0
 *
 * RCCL's interface is NCCL's, under another name.
 */
#include <rccl/rccl.h>
