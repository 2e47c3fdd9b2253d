# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of an installation and the Python package: python3 wheel.py ROOT VERSION TAG OUT

ROOT is what `install.sh install` put below a prefix. The tool goes where scripts go, the rest to the same places below the prefix
of the Python environment (its folder lib, libexec, share), so that a virtual environment is a prefix as any other, in which the
files find each other. TAG: for which machines it is, such as manylinux_2_17_x86_64. Needs Python 3.11, and nothing else.
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import tomllib
import zipfile

PYTHON = pathlib.Path(__file__).resolve().parent.parent / "python"
# What of an installation is in the wheel. The Python modules are where Python looks for modules; headers are for compilers.
PARTS = ("bin/", "lib/lib", "libexec/", "share/man/", "share/bash-completion/", "share/zsh/", "share/fish/", "share/nccl-otf2/recordings/",
         "share/doc/nccl-otf2/LICENSE", "share/doc/nccl-otf2/THIRD-PARTY-LICENSES")


def metadata(project, version):
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']}", f"Requires-Python: {project['requires-python']}"]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need} ; extra == '{extra}'" for need in needs]
    return "\n".join(lines) + "\n"


def contents(root, settings, info, data):
    """Yields the name in the wheel, the bytes and the mode of every file but RECORD."""
    for module in settings["py-modules"]:
        yield f"{module}.py", (PYTHON / f"{module}.py").read_bytes(), 0o644
    for package in settings["packages"]:
        folder = PYTHON / settings["package-dir"][package]
        for pattern in settings["package-data"][package]:
            for file in sorted(folder.glob(pattern)):
                yield f"{package}/{file.name}", file.read_bytes(), 0o644
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if not file.is_file() or not name.startswith(PARTS):
            continue
        place = f"{data}/scripts/{file.name}" if name.startswith("bin/") else f"{data}/data/{name}"
        yield place, file.read_bytes(), 0o755 if os.access(file, os.X_OK) and not name.startswith("share/") else 0o644
    yield f"{info}/METADATA", None, 0o644
    yield f"{info}/WHEEL", None, 0o644


def main(root, version, tag, out):
    described = tomllib.loads((PYTHON / "pyproject.toml").read_text())
    name = described["project"]["name"].replace("-", "_")
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    made = {
        f"{info}/METADATA": metadata(described["project"], version),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: nccl-otf2 packaging\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n",
    }
    when = min(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315619200), 4354732800)  # what zip can say: from 1980 on
    stamp = time.gmtime(when)[:6]
    record = ""
    path = pathlib.Path(out) / f"{name}-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def write(name, text, mode):
            entry = zipfile.ZipInfo(name, stamp)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, text)

        for name, text, mode in contents(pathlib.Path(root), described["tool"]["setuptools"], info, data):
            if text is None:
                text = made[name].encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(text)}\n"
            write(name, text, mode)
        write(f"{info}/RECORD", record + f"{info}/RECORD,,\n", 0o644)


if __name__ == "__main__":
    main(*sys.argv[1:])
