"""The line of a failed Java's output that says why."""

from __future__ import annotations

import pytest

from gscope.engine.spark.jvm.cause import cause_in

IVY = """\
WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" java.lang.IllegalArgumentException: basedir must be absolute: ?/.ivy2
\tat org.apache.ivy.util.Checks.checkAbsolute(Checks.java:48)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: java.io.IOException: another
\t... 12 more
"""
HEAP = """\
Picked up JAVA_TOOL_OPTIONS: -Dx=java.lang.Error
Error occurred during initialization of VM
Could not reserve enough space for 2097152KB object heap
"""
OPTION = """\
Unrecognized VM option 'UseEpsilon'
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
CLASS = """\
Error: Could not find or load main class org.apache.spark.deploy.SparkSubmit
Caused by: java.lang.ClassNotFoundException: org.apache.spark.deploy.SparkSubmit
"""
LOGGED = """\
2026-11-22T11:00:00,000 ERROR SparkContext: Error initializing: java.net.BindException: no port
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
2026-11-22T11:00:00,100 ERROR Utils: java.lang.NullPointerException
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IVY, "java.lang.IllegalArgumentException: basedir must be absolute: ?/.ivy2"),
        (
            HEAP.replace("=java.lang.Error", ""),
            "Error occurred during initialization of VM:"
            " Could not reserve enough space for 2097152KB object heap",
        ),
        (OPTION, "Unrecognized VM option 'UseEpsilon'"),
        (CLASS, "java.lang.ClassNotFoundException: org.apache.spark.deploy.SparkSubmit"),
        (LOGGED, "java.net.BindException: no port"),
        ("java: No space left on device\n", "java: No space left on device"),
        ("", "no output"),
        ("----\n\tat x.Y.z(Y.java:1)\n", "no output"),
    ],
)
def test_the_first_exception_is_the_cause(text: str, expected: str) -> None:
    assert cause_in(text.splitlines()) == expected
