# SPDX-License-Identifier: Apache-2.0
# For Spack, built from the sources: put it into a repository as packages/nccl_otf2/package.py
from spack.package import *


class NcclOtf2(MakefilePackage):
    """Records what NCCL and RCCL do in a job, and says what made the ranks wait: a plugin for NCCL's profiler interface, and a
    tool that reads what it recorded."""

    homepage = "https://@MODULE@"
    git = "https://@MODULE@.git"

    license("Apache-2.0")

    version("@VERSION@", tag="v@VERSION@", commit="@COMMIT@")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("go@@GO@:", type="build")  # modules come through GOPROXY

    def build(self, spec, prefix):
        make("build", f"PREFIX={prefix}")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}", f"LIBDIR={prefix.lib}")

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.share.join("nccl-otf2").python)
