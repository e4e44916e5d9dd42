"""The settings of the gateway JVM, and the options of Java that follow from them."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from gscope.engine.spark.cluster.master import LOCAL, MasterKind
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.spark.cluster.master import Master
    from gscope.engine.spark.jvm.java import Java

DEFAULT_HEAP_BYTES = 2 << 30

MINIMUM_HEAP_BYTES = 512 << 20
"""Spark refuses to start below 450 MiB."""

# The packages that org.apache.spark.launcher.JavaModuleOptions of Spark 4.3 opens to reflection.
_OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

_COMMON_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    # No /tmp/hsperfdata files, and no warning about archives on the terminal.
    "-XX:-UsePerfData",
    "-XX:-CreateCoredumpOnCrash",
    "-Xlog:disable",
    "-XX:+UseSerialGC",
    # A start touches some 250 MB for the first time: in pages of 2 MB, where the system allows.
    "-XX:+UseTransparentHugePages",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)

_UNLOCKED = "-XX:+UnlockDiagnosticVMOptions"

_FIXED_ADDRESS = (_UNLOCKED, "-XX:ArchiveRelocationMode=0")
"""Maps the archive to the address for which it was made, if that is free.

At any other address, Java's default, each of its pointers is rewritten: all of its 160 MB are read,
copied and held in memory, in half a second of CPU time.
"""

_UNVERIFIED = (_UNLOCKED, "-XX:-BytecodeVerificationRemote")
"""Loads classes from their jars without verifying their code, which takes a fifth of a start's CPU
time. Those of an archive are not verified again either: the JVM that made it has done that."""


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """The settings with which the gateway JVM is started.

    Attributes:
        java: the runtime.
        heap_bytes: the largest size of the heap, at least ``MINIMUM_HEAP_BYTES``.
        only_c1: whether Java uses its fast compiler only, which is best for steps of up to some
            200,000 tuples; False is best for millions.
        archive: the class-data archive to map; None to load classes from their jars.
        options: further options of Java, placed after all others.
        master: where the tasks of the session run.
        verifies: whether classes that are not in an archive are verified. False if all come from
            the installed Spark.
    """

    java: Java
    heap_bytes: int = DEFAULT_HEAP_BYTES
    only_c1: bool = True
    archive: Path | None = None
    options: tuple[str, ...] = ()
    master: Master = LOCAL
    verifies: bool = True

    @property
    def has_managers(self) -> bool:
        """Whether the class path has the jars of YARN and Kubernetes."""
        return self.master.kind in (MasterKind.YARN, MasterKind.KUBERNETES)


def jvm_options(settings: JvmSettings, private: Path) -> list[str]:
    """Return Java's options; ``private`` is the JVM's private folder."""
    java = settings.java
    options = [f"-Xmx{settings.heap_bytes >> 10}k", *_COMMON_OPTIONS]
    options += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    if java.major >= 24:
        options += ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
    if settings.only_c1:
        options.append("-XX:TieredStopAtLevel=1")
    options.append(f"-Djava.io.tmpdir={private / 'tmp'}")
    # In containers the user database may have no entry for the uid. Java then has neither home nor
    # user name, and Spark and Hadoop fail. gscope reads nothing from a home.
    options += [f"-Duser.home={private / 'tmp'}", f"-Duser.name={user_name()}"]
    options.append(f"-Dlog4j2.configurationFile={(private / 'log4j2.properties').as_uri()}")
    if settings.archive is not None:
        options += archive_options(java, settings.archive)
    elif not settings.verifies:
        options += _UNVERIFIED
    return [*options, *settings.options]


def archive_options(java: Java, archive: Path) -> list[str]:
    """Return the options that map ``archive``; the JVM ignores an unsuitable one."""
    if uses_aot_cache(java):
        return [*_FIXED_ADDRESS, f"-XX:AOTCache={archive}"]
    return [*_FIXED_ADDRESS, "-Xshare:auto", f"-XX:SharedArchiveFile={archive}"]


def uses_aot_cache(java: Java) -> bool:
    """Return whether this Java has ahead-of-time caches (JEP 514) instead of CDS archives."""
    return java.major >= 25


def has_name() -> bool:
    """Return whether the user database knows this user."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def user_name() -> str:
    """Return the name of this user, or its number if it has no name."""
    return pwd.getpwuid(os.geteuid()).pw_name if has_name() else str(os.geteuid())
