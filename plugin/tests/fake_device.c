/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the CUDA driver: one process, device 3, or no context at all. With FAKE_HIP it is HIP's runtime.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FAKE_HIP
#define cuCtxGetDevice hipGetDevice
#define cuDeviceGetUuid_v2 hipDeviceGetUuid
#define cuDeviceGetPCIBusId hipDeviceGetPCIBusId
#endif

int cuCtxGetDevice(int *device) {
  if (getenv("FAKE_NO_CONTEXT")) return 201; /* CUDA_ERROR_INVALID_CONTEXT */
  *device = 3;
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device) {
  for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(16 * device + i);
  return 0;
}

int cuDeviceGetPCIBusId(char *text, int size, int device) {
  char id[32];
  snprintf(id, sizeof id, "%s:%02x:00.0", getenv("FAKE_DOMAIN") ? getenv("FAKE_DOMAIN") : "0000", 0x30 + device);
  if (strlen(id) >= (size_t)size) return 1;
  strcpy(text, id);
  return 0;
}
