"""Renders the recipe for conda-forge with its pins for Linux, and compiles the package for Spack: python recipes.py ROOT. Needs
py-rattler-build."""

import sys
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

# Compilers as conda-forge pins them.
PINS = {
    "c_stdlib": ["sysroot"],
    "c_stdlib_version": ["2.28"],
    "c_compiler": ["gcc"],
    "c_compiler_version": ["14"],
    "rust_compiler": ["rust"],
    "rust_compiler_version": ["1.95"],
}

root = Path(sys.argv[1])
recipe = Stage0Recipe.from_file(str(root / "packaging/conda-forge/recipe.yaml"))
for platform, expected in (("linux-64", 2), ("linux-aarch64", 2), ("osx-arm64", 0)):
    target = PlatformConfig(target_platform=platform, build_platform="linux-64", host_platform=platform)
    packages = [variant.recipe.package for variant in recipe.render(VariantConfig(PINS), RenderConfig(platform=target))]
    names = [f"{package.name} {package.version}" for package in packages]
    if len(names) != expected:
        sys.exit(f"recipes: {platform}: expected {expected} packages, found {names}")
    print(f"recipe for conda-forge: {platform}: {', '.join(names) or 'none'}")

spack = root / "packaging/spack/package.py"
compile(spack.read_text(), str(spack), "exec")
print("package for Spack: compiled")
