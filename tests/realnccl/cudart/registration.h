/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REALNCCL_REGISTRATION_H
#define REALNCCL_REGISTRATION_H

/* The name under which a kernel's host function was registered; NULL: it was not. */
const char *registered_name(const void *host);

#endif
