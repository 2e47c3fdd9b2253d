/* SPDX-License-Identifier: Apache-2.0
 *
 * A librocm_smi64.so.7 for pretended GPUs, joined by PCIe.
 */
#include <stdint.h>

#include "../gpu/settings.h"

#define API __attribute__((visibility("default"))) int
enum { OK, LINK_PCIE = 1, HOPS = 2, WEIGHT = 40, FIRST_BUS = 0x10 };

API rsmi_init(uint64_t flags) { return OK; }

API rsmi_num_monitor_devices(uint32_t *count)
{
  *count = (uint32_t)setting_number("REALNCCL_NDEV", 8);
  return OK;
}

API rsmi_dev_pci_id_get(uint32_t device, uint64_t *id)
{
  *id = (uint64_t)FIRST_BUS * (device + 1) << 8;
  return OK;
}

API rsmi_topo_get_link_type(uint32_t a, uint32_t b, uint64_t *hops, int *type)
{
  *hops = HOPS;
  *type = LINK_PCIE;
  return OK;
}

API rsmi_topo_get_link_weight(uint32_t a, uint32_t b, uint64_t *weight)
{
  *weight = WEIGHT;
  return OK;
}

API rsmi_status_string(int status, const char **text)
{
  *text = "imaginary";
  return OK;
}

struct version {
  uint32_t major, minor, patch;
  const char *build;
};

API rsmi_version_get(struct version *version)
{
  *version = (struct version){7, 0, 0, "0"};
  return OK;
}

API rsmi_dev_firmware_version_get(uint32_t device, int block, uint64_t *version)
{
  *version = 100;
  return OK;
}
