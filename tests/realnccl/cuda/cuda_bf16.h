/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.h asks for it and uses nothing of it.
 */
