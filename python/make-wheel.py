"""Makes the wheel of the Python package: python3 make-wheel.py LIBRARY OUTPUT-DIRECTORY

The wheel holds the package, libtouchstone.so.0 and the libraries that it needs, so that it runs on a Debian 12 or a newer
system on which only Python is installed. What every such system has stays outside (PEP 600): glibc, libgcc_s, libstdc++.
The licences of all that is inside are in NAME.dist-info/licenses. It needs nothing but Python's standard library, ldd, strip,
dpkg, and the clang that comes with Swift.
"""

import base64
import hashlib
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "touchstone"
#: The libraries that systems of the platform tag have.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libutil|libgcc_s|libstdc\+\+)[.-]")
#: Libraries that are opened at run time (docs/storage-sqlite.md).
OPENED = ["libsqlite3.so.0", "libsqlcipher.so.0"]

#: What of ICU's data the library asks for nothing of: names of currencies, languages, regions, time zones and units, conversions
#: of character sets and scripts, spelled numbers. Collations, breaks, characters, rules of time zones and the locales stay.
UNUSED_DATA = re.compile(r"^(curr|lang|region|zone|unit|translit|rbnf)/|\.cnv$|^cnvalias\.icu$")

METADATA = """Metadata-Version: 2.1
Name: touchstone
Version: {version}
Summary: A database of JSON documents with revisions, queries and sync, on the storage engine of your choice
Requires-Python: >=3.9
License: Apache-2.0
{files}
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: arrow
Requires-Dist: pyarrow; extra == "arrow"
Description-Content-Type: text/markdown

{description}
"""

DESCRIPTION = """A database of JSON documents with revision trees, N1QL queries, full-text search, live queries and sync, on SQLite, LMDB,
SQLCipher and other engines. The wheel has everything inside.

```python
import touchstone

with touchstone.open("travel.touchstone", engine="lmdb") as db:
    db["hotel_1"] = {"type": "hotel", "name": "Apple Droid", "country": "France"}
    for row in db.query("SELECT name FROM _ WHERE country = $country", country="France"):
        print(row["name"])
```
"""


def needed(library):
    """The libraries that one loads, by their names, with their paths."""
    lines = subprocess.run(["ldd", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for line in lines.splitlines():
        match = re.match(r"\s*(\S+) => (\S+) \(", line)
        if match:
            found[match.group(1)] = match.group(2)
        elif "not found" in line:
            sys.exit("make-wheel: %s needs %s" % (library, line.strip()))
    return {name: path for name, path in found.items() if not SYSTEM.match(name)}


def opened(name):
    """The path of a library that the loader finds."""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout
    match = re.search(r"^\s*%s .*=> (\S+)$" % re.escape(name), lines, re.MULTILINE)
    if not match:
        sys.exit("make-wheel: there is no %s" % name)
    return match.group(1)


def version(library):
    """The version that the library tells."""
    code = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); f = l.touchstone_version; f.restype = ctypes.c_char_p; print(f().decode())"
    return subprocess.run(
        [sys.executable, "-c", code, library], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def tag(libraries):
    """The platform tag: the newest version of glibc that a library asks for."""
    newest = (2, 17)
    for library in libraries:
        symbols = subprocess.run(["nm", "-D", library], stdout=subprocess.PIPE, text=True, check=True).stdout
        for major, minor in re.findall(r"@GLIBC_(\d+)\.(\d+)", symbols):
            newest = max(newest, (int(major), int(minor)))
    return "manylinux_%d_%d_%s" % (*newest, platform.machine())


def smaller_data(path):
    """The content of libicudata without what isn't used: the bytes of ICU's format "CmnD", and the name of their symbol."""
    with open(path, "rb") as file:
        content = file.read()
    symbols = subprocess.run(["nm", "-D", "-S", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    symbol = re.search(r"^\w+ (\w+) R (icudt\d+_dat)$", symbols, re.MULTILINE)
    start = content.find(b"CmnD") - 12
    if not symbol or start < 0 or content[start + 2 : start + 4] != b"\xda\x27":
        sys.exit("make-wheel: %s isn't ICU's data" % path)
    header = content[start : start + struct.unpack_from("<H", content, start)[0]]
    # A table of offsets of names and of items, sorted by name; then the names, then the items.
    table = start + len(header)
    count = struct.unpack_from("<I", content, table)[0]
    offsets = [struct.unpack_from("<II", content, table + 4 + 8 * number) for number in range(count)]
    ends = [offset for _, offset in offsets[1:]] + [int(symbol.group(1), 16) - len(header)]
    items = []
    for (name_offset, offset), end in zip(offsets, ends):
        name = content[table + name_offset : content.index(b"\0", table + name_offset)]
        if not UNUSED_DATA.search(name.decode().split("/", 1)[1]):
            items.append((name, content[table + offset : table + end]))
    names = b"".join(name + b"\0" for name, _ in items)
    first = 4 + 8 * len(items)
    result, name_offset, offset = [], first, -(-(first + len(names)) // 16) * 16
    padding = offset - first - len(names)
    for name, item in items:
        result.append(struct.pack("<II", name_offset, offset))
        name_offset += len(name) + 1
        offset += -(-len(item) // 16) * 16
    result += [names, b"\xaa" * padding] + [item + b"\xaa" * (-len(item) % 16) for _, item in items]
    return header + struct.pack("<I", len(items)) + b"".join(result), symbol.group(2)


def licenses(libraries):
    """The texts of the licences of libraries, by their names: Debian's, of each package, and the common ones that these name."""
    packages = {}
    for path in libraries:
        real = os.path.realpath(path)
        # Debian lists files by either of two paths.
        places = [real, real[len("/usr") :] if real.startswith("/usr/lib") else "/usr" + real]
        for place in places:
            found = subprocess.run(["dpkg-query", "-S", place], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if found.returncode == 0:
                packages.setdefault(found.stdout.split(":")[0], []).append(os.path.basename(path))
                break
        else:
            sys.exit("make-wheel: no package has %s, so its licence isn't known" % path)
    texts, common = {}, set()
    for package, names in packages.items():
        with open("/usr/share/doc/%s/copyright" % package, encoding="utf-8") as file:
            text = file.read()
        common.update(re.findall(r"/usr/share/common-licenses/([A-Za-z]+[-0-9.]*[0-9])", text))
        texts[package + ".txt"] = "This is about %s.\n\n%s" % (", ".join(sorted(names)), text)
    for name in sorted(common):
        with open("/usr/share/common-licenses/" + name, encoding="utf-8") as file:
            texts[name + ".txt"] = file.read()
    # Swift's runtime is inside libtouchstone.
    swift = os.path.realpath(shutil.which("swiftc") or sys.exit("make-wheel: there is no swiftc"))
    with open(os.path.join(os.path.dirname(swift), "..", "share", "swift", "LICENSE.txt"), encoding="utf-8") as file:
        texts["swift-runtime.txt"] = "This is about the runtime and Foundation of Swift in libtouchstone.so.0.\n\n" + file.read()
    return texts


def write_smaller_data(path, target):
    """Makes a libicudata with less data."""
    content, symbol = smaller_data(path)
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "data"), "wb") as file:
            file.write(content)
        with open(os.path.join(work, "data.s"), "w") as file:
            file.write(
                '.section .rodata\n.globl {0}\n.type {0}, %object\n.balign 16\n{0}: .incbin "{1}/data"\n.size {0}, .-{0}\n'
                '.section .note.GNU-stack,"",%progbits\n'.format(symbol, work)
            )
        name = "-Wl,-soname," + os.path.basename(target)
        subprocess.run(
            ["clang", "-shared", "-nostdlib", "-fuse-ld=lld", name, "-o", target, os.path.join(work, "data.s")], check=True
        )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    library, output = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as work:
        package = os.path.join(work, NAME)
        shutil.copytree(
            os.path.join(HERE, NAME), package, ignore=shutil.ignore_patterns("__pycache__", "*.so*", "lib")
        )
        folder = os.path.join(package, "lib")
        os.mkdir(folder)
        sources = {"libtouchstone.so.0": library}
        for name in OPENED:
            sources[name] = opened(name)
        for path in list(sources.values()):
            sources.update(needed(path))
        for name, path in sources.items():
            target = os.path.join(folder, name)
            if name.startswith("libicudata."):
                write_smaller_data(path, target)
                continue
            shutil.copyfile(path, target)
            subprocess.run(["strip", "--strip-unneeded", target], check=True)
        libraries = [os.path.join(folder, name) for name in sources]
        number, platform_tag = version(library), tag(libraries)
        info = "%s-%s.dist-info" % (NAME, number)
        os.makedirs(os.path.join(work, info, "licenses"))

        def write(name, content):
            with open(os.path.join(work, info, name), "w", encoding="utf-8") as file:
                file.write(content)

        with open(os.path.join(HERE, "..", "LICENSE"), encoding="utf-8") as file:
            text = file.read()
        texts = dict(licenses(path for name, path in sources.items() if path != library), LICENSE=text)
        for name, content in texts.items():
            write(os.path.join("licenses", name), content)
        files = "\n".join("License-File: " + name for name in sorted(texts))
        write("METADATA", METADATA.format(version=number, files=files, description=DESCRIPTION))
        write(
            "WHEEL",
            "Wheel-Version: 1.0\nGenerator: make-wheel\nRoot-Is-Purelib: false\nTag: py3-none-%s\n" % platform_tag,
        )
        os.makedirs(output, exist_ok=True)
        wheel = os.path.join(output, "%s-%s-py3-none-%s.whl" % (NAME, number, platform_tag))
        record = []
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for directory, folders, files in os.walk(work):
                folders.sort()
                for file in sorted(files):
                    path = os.path.join(directory, file)
                    name = os.path.relpath(path, work)
                    with open(path, "rb") as opened_file:
                        content = opened_file.read()
                    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                    record.append("%s,sha256=%s,%d" % (name, digest, len(content)))
                    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = 0o644 << 16
                    archive.writestr(entry, content, compresslevel=9)
            record.append("%s/RECORD,," % info)
            entry = zipfile.ZipInfo("%s/RECORD" % info, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, "\n".join(record) + "\n")
    print("wheel: %s, %.1f MB, %d libraries" % (wheel, os.path.getsize(wheel) / 1e6, len(sources)))


main()
