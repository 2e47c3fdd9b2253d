/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-in for libnvidia-ml: N fake GPUs, no NVLink, no fabric. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int ret_t; /* 0 ok, 2 invalid argument, 3 not supported, 6 not found */
typedef struct dev *dev_t_;
#define NV __attribute__((visibility("default"))) ret_t
static int ndev(void) { const char *s = getenv("REALNCCL_NDEV"); return s && *s ? atoi(s) : 8; }
static int cc(void) { const char *s = getenv("REALNCCL_CC"); return s && *s ? atoi(s) : 80; }
static dev_t_ H(int i) { return (dev_t_)(size_t)(0x100 + i); }
static int I(dev_t_ d) { return (int)((size_t)d - 0x100); }
NV nvmlInit(void) { return 0; }
NV nvmlInit_v2(void) { return 0; }
NV nvmlShutdown(void) { return 0; }
NV nvmlDeviceGetCount(unsigned *n) { *n = ndev(); return 0; }
NV nvmlDeviceGetCount_v2(unsigned *n) { *n = ndev(); return 0; }
NV nvmlDeviceGetHandleByIndex(unsigned i, dev_t_ *d) { if ((int)i >= ndev()) return 2; *d = H(i); return 0; }
NV nvmlDeviceGetHandleByPciBusId(const char *s, dev_t_ *d) {
  unsigned dom, bus;
  if (sscanf(s, "%x:%x:", &dom, &bus) != 2 || bus < 0x10 || (int)(bus / 16) > ndev()) return 6;
  *d = H(bus / 16 - 1);
  return 0;
}
NV nvmlDeviceGetIndex(dev_t_ d, unsigned *i) { *i = I(d); return 0; }
__attribute__((visibility("default"))) const char *nvmlErrorString(ret_t r) { return r ? "imaginary NVML error" : "ok"; }
NV nvmlDeviceGetNvLinkState(dev_t_ d, unsigned l, int *a) { (void)d; (void)l; *a = 0; return 3; }
NV nvmlDeviceGetNvLinkRemotePciInfo(dev_t_ d, unsigned l, void *p) { (void)d; (void)l; (void)p; return 3; }
NV nvmlDeviceGetNvLinkCapability(dev_t_ d, unsigned l, int c, unsigned *r) { (void)d; (void)l; (void)c; *r = 0; return 3; }
NV nvmlDeviceGetCudaComputeCapability(dev_t_ d, int *a, int *b) { (void)d; *a = cc() / 10; *b = cc() % 10; return 0; }
NV nvmlDeviceGetP2PStatus(dev_t_ a, dev_t_ b, int i, int *s) { (void)i; *s = a == b ? 0 : 0; return 0; }
NV nvmlDeviceGetFieldValues(dev_t_ d, int n, void *v) { (void)d; (void)n; (void)v; return 3; }

/* asked for by NCCL 2.30 */
struct pci { char id[16]; unsigned domain, bus, device, dev_id, sub_id, r0, r1, r2, r3; };
NV nvmlDeviceGetPciInfo_v3(dev_t_ d, struct pci *p) {
  memset(p, 0, sizeof *p);
  p->bus = 0x10 * (I(d) + 1);
  snprintf(p->id, sizeof p->id, "0000:%02X:00.0", p->bus);
  p->dev_id = 0xfa4e10de; /* made-up device */
  p->sub_id = 0xfa4e10de;
  return 0;
}
struct pciext { unsigned version, domain, bus, device, dev_id, sub_id, base_class, sub_class; char id[32]; };
NV nvmlDeviceGetPciInfoExt(dev_t_ d, struct pciext *p) {
  unsigned v = p->version;
  memset(p, 0, sizeof *p);
  p->version = v;
  p->bus = 0x10 * (I(d) + 1);
  p->dev_id = 0xfa4e10de;
  p->sub_id = 0xfa4e10de;
  p->base_class = 3; p->sub_class = 2;
  snprintf(p->id, sizeof p->id, "00000000:%02X:00.0", p->bus);
  return 0;
}
NV nvmlDeviceGetPcieLinkMaxSpeed(dev_t_ d, int *s) { (void)d; *s = 16000; return 0; }
NV nvmlDeviceGetCurrPcieLinkGeneration(dev_t_ d, unsigned *g) { (void)d; *g = 4; return 0; }
NV nvmlDeviceGetCurrPcieLinkWidth(dev_t_ d, unsigned *w) { (void)d; *w = 16; return 0; }
