"""libdtc for Spack: copy this folder to packages/libdtc of a repository of Spack."""

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Libdtc(Package):
    """Packs, unpacks and sends MPI derived datatypes by kernels that are compiled for each type, on CPUs and on NVIDIA GPUs."""

    # There is no address to fetch from yet: the tarball of the sources is looked for where Spack is called.
    manual_download = True
    url = f"file://{os.getcwd()}/dtc-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    # Without a sum, which the release has beside the tarball and this file is part of: spack install --no-checksum.
    version("0.1.0")

    variant("yaksa", default=False, description="Install libyaksa, for an MPICH that is configured with it")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")

    requires("platform=linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of")

    # CUDA and the MPI of a program are looked for at run time.

    def install(self, spec, prefix):
        # The device tree compiler has a command of the name dtc.
        cargo = which("cargo", required=True)
        cargo("xtask", "install", "--prefix", str(prefix), "--program-name", "datatype-compiler")
        if spec.satisfies("+yaksa"):
            cargo("xtask", "install-yaksa", "--prefix", str(prefix))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        command = Executable(join_path(self.prefix.bin, "datatype-compiler"))
        command("doctor")
