/* SPDX-License-Identifier: Apache-2.0
 *
 * rccl.h asks for it and uses nothing of it.
 */
