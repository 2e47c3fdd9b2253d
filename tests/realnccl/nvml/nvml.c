/* SPDX-License-Identifier: Apache-2.0
 *
 * A libnvidia-ml.so.1 for pretended GPUs: their number and capability, no NVLink, no fabric.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../gpu/settings.h"

enum { OK, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { FIRST_BUS = 0x10, FIRST_HANDLE = 0x100, IDENTITY = 0x7a4e10de };
#define API __attribute__((visibility("default"))) int

typedef struct device *device;

static unsigned count(void) { return (unsigned)setting_number("REALNCCL_NDEV", 8); }
static unsigned index_of(device d) { return (unsigned)(uintptr_t)d - FIRST_HANDLE; }
static unsigned bus_of(device d) { return FIRST_BUS * (index_of(d) + 1); }

API nvmlInit(void) { return OK; }
API nvmlInit_v2(void) { return OK; }
API nvmlShutdown(void) { return OK; }
API nvmlDeviceGetCount(unsigned *n)
{
  *n = count();
  return OK;
}

API nvmlDeviceGetCount_v2(unsigned *n)
{
  *n = count();
  return OK;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int error) { return error ? "imaginary NVML error" : "ok"; }

API nvmlDeviceGetHandleByIndex(unsigned index, device *d)
{
  if (index >= count()) return INVALID_ARGUMENT;
  *d = (device)(uintptr_t)(FIRST_HANDLE + index);
  return OK;
}

API nvmlDeviceGetHandleByPciBusId(const char *name, device *d)
{
  unsigned domain, bus;
  if (sscanf(name, "%x:%x:", &domain, &bus) != 2 || bus < FIRST_BUS || bus / FIRST_BUS > count()) return NOT_FOUND;
  return nvmlDeviceGetHandleByIndex(bus / FIRST_BUS - 1, d);
}

API nvmlDeviceGetIndex(device d, unsigned *index)
{
  *index = index_of(d);
  return OK;
}

API nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor)
{
  const int cc = (int)setting_number("REALNCCL_CC", 80);
  *major = cc / 10;
  *minor = cc % 10;
  return OK;
}

API nvmlDeviceGetP2PStatus(device a, device b, int which, int *status)
{
  *status = OK;
  return OK;
}

API nvmlDeviceGetNvLinkState(device d, unsigned link, int *active)
{
  *active = 0;
  return NOT_SUPPORTED;
}

API nvmlDeviceGetNvLinkRemotePciInfo(device d, unsigned link, void *info) { return NOT_SUPPORTED; }
API nvmlDeviceGetNvLinkCapability(device d, unsigned link, int what, unsigned *can)
{
  *can = 0;
  return NOT_SUPPORTED;
}

API nvmlDeviceGetFieldValues(device d, int n, void *values) { return NOT_SUPPORTED; }
API nvmlDeviceGetPcieLinkMaxSpeed(device d, int *speed)
{
  *speed = 16000;
  return OK;
}

API nvmlDeviceGetCurrPcieLinkGeneration(device d, unsigned *generation)
{
  *generation = 4;
  return OK;
}

API nvmlDeviceGetCurrPcieLinkWidth(device d, unsigned *width)
{
  *width = 16;
  return OK;
}

struct pci {
  char legacy[16];
  unsigned domain, bus, device, identity, subsystem, reserved[4];
};

API nvmlDeviceGetPciInfo_v3(device d, struct pci *p)
{
  *p = (struct pci){.bus = bus_of(d), .identity = IDENTITY, .subsystem = IDENTITY};
  snprintf(p->legacy, sizeof p->legacy, "0000:%02X:00.0", p->bus & 0xff);
  return OK;
}

struct pci_more {
  unsigned version, domain, bus, device, identity, subsystem, base_class, sub_class;
  char name[32];
};

API nvmlDeviceGetPciInfoExt(device d, struct pci_more *p)
{
  *p = (struct pci_more){
    .version = p->version, .bus = bus_of(d), .identity = IDENTITY, .subsystem = IDENTITY, .base_class = 3, .sub_class = 2};
  snprintf(p->name, sizeof p->name, "00000000:%02X:00.0", p->bus & 0xff);
  return OK;
}
