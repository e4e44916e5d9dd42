"""The part of a Kubernetes API that Spark's executors need, with pods that are processes here.

The server takes what is posted to it as a cluster would: it refuses requests without the token and
manifests that do not follow the published schema of their kind, keeps objects with their resource
versions, lists them by label, and streams changes to watchers. In place of a kubelet it starts the
executor of a pod as the entry point of Spark's image does, in a mount namespace in which the given
folders are empty, and reports its end as the phase of the pod.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import queue
import re
import secrets
import signal
import ssl
import struct
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate
import yaml
from tests.support.certificates import make_certificate

from gscope.engine.spark.jvm.class_path import spark_home
from gscope.engine.spark.jvm.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

VERSION = "1.33"
"""The version of Kubernetes whose schemas hold."""

_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/(?P<kind>[a-z]+)(/(?P<name>[^/]+))?")
_KINDS = {
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "pods": "Pod",
    "services": "Service",
}

_WEB_SOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Object = dict[str, Any]


@dataclass(slots=True)
class KubernetesApi:
    """A server and its pods; a context manager that ends both.

    Attributes:
        folder: holds the certificate, the token, and a folder for each pod.
        python: the folder with the ``python3`` that pods find.
        hidden: folders of this host that are empty in pods.
        pods: the processes of pods, by name.
        refused: what the server refused, in the order of the requests.
        role: the Role of the user, which bounds what the server does for it.
        main_class: the class that pods run, Spark's own unless a test names another.
    """

    folder: Path
    python: Path
    role: Object
    hidden: Sequence[Path] = ()
    pods: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    posted: list[Object] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    main_class: str = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    _watchers: list[tuple[str, queue.SimpleQueue[Object | None]]] = field(default_factory=list)
    _version: int = 100
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        kubernetes_validate.validate(self.role, VERSION, strict=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        made = make_certificate(self.folder, "kubernetes")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        api = self

        class Handler(_Handler):
            owner: KubernetesApi = api

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._server is not None
        with self._lock:
            for _, changes in self._watchers:
                changes.put(None)
        self._server.shutdown()
        self._server.server_close()
        for process in self.pods.values():
            _kill(process)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.server_address[1])

    def kubeconfig(self, token: str | None = None) -> Path:
        """Write a configuration as kubectl's.

        It has the server, its certificate, and the token or another.
        """
        path = self.folder / "kubeconfig"
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self.folder / "kubernetes.crt"),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "gscope", "user": {"token": token or self.token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "gscope"}}],
        }
        path.write_text(yaml.safe_dump(document))
        path.chmod(0o600)
        return path

    def kill_pod(self) -> str:
        """Kill the executor of one running pod, and return the name of the pod."""
        for name, process in self.pods.items():
            if process.poll() is None:
                _kill(process)
                return name
        message = "no pod runs"
        raise AssertionError(message)

    def permits(self, verb: str, kind: str, namespace: str) -> bool:
        """Return whether the role lets its user do ``verb`` to objects of a kind."""
        return namespace == self.role["metadata"]["namespace"] and any(
            "" in rule["apiGroups"] and kind in rule["resources"] and verb in rule["verbs"]
            for rule in self.role["rules"]
        )

    def create(self, namespace: str, kind: str, posted: Object) -> Object:
        """Add an object, and start it if it is a pod.

        Raises:
            ValueError: it does not follow the schema of its kind, or its name is taken.
        """
        self.posted.append(copy.deepcopy(posted))
        try:
            kubernetes_validate.validate(posted, VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise ValueError(error.message) from error
        if posted["kind"] != _KINDS[kind]:
            message = f"{posted['kind']} posted to {kind}"
            raise ValueError(message)
        name = posted["metadata"]["name"]
        with self._lock:
            if (namespace, kind, name) in self._objects:
                message = f"{kind} {name} exists"
                raise ValueError(message)
            made = copy.deepcopy(posted)
            made["metadata"] |= {
                "namespace": namespace,
                "uid": secrets.token_hex(8),
                "creationTimestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            }
            if kind == "pods":
                made["status"] = {"phase": "Pending"}
            self._objects[namespace, kind, name] = made
            self._changed("ADDED", kind, made)
            answer = copy.deepcopy(made)
            if kind == "pods":
                threading.Thread(target=self._run, args=(namespace, name), daemon=True).start()
        return answer

    def select(self, namespace: str, kind: str, selector: str, name: str | None) -> list[Object]:
        """Return the objects of a kind that have these labels, or this name."""
        with self._lock:
            return [
                copy.deepcopy(each)
                for (space, of_kind, called), each in sorted(self._objects.items())
                if (space, of_kind) == (namespace, kind)
                and name in (None, called)
                and _has_labels(each, selector)
            ]

    def delete(self, namespace: str, kind: str, selector: str, name: str | None) -> list[Object]:
        """Remove objects and end their processes."""
        with self._lock:
            found = self.select(namespace, kind, selector, name)
            for each in found:
                called = each["metadata"]["name"]
                self._objects.pop((namespace, kind, called))
                if called in self.pods:
                    _kill(self.pods[called])
                self._changed("DELETED", kind, each)
        return found

    def patch(self, namespace: str, kind: str, name: str, patch: Object) -> Object | None:
        """Merge ``patch`` into an object; None if there is none."""
        with self._lock:
            each = self._objects.get((namespace, kind, name))
            if each is None:
                return None
            _merge(each, patch)
            self._changed("MODIFIED", kind, each)
            return copy.deepcopy(each)

    def listed(self, namespace: str, kind: str, selector: str) -> Object:
        """Return the list of the objects of a kind, as the API does."""
        with self._lock:
            return {
                "kind": f"{_KINDS[kind]}List",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": str(self._version)},
                "items": self.select(namespace, kind, selector, None),
            }

    def watch(self, kind: str) -> Iterator[Object]:
        """Yield each change of an object of a kind, until the server ends."""
        changes: queue.SimpleQueue[Object | None] = queue.SimpleQueue()
        with self._lock:
            self._watchers.append((kind, changes))
        while (change := changes.get()) is not None:
            yield change

    def _changed(self, event: str, kind: str, changed: Object) -> None:
        self._version += 1
        changed["metadata"]["resourceVersion"] = str(self._version)
        for watched, changes in self._watchers:
            if watched == kind:
                changes.put({"type": event, "object": copy.deepcopy(changed)})

    def _run(self, namespace: str, name: str) -> None:
        """Run a pod to its end, and set its phases."""
        (pod,) = self.select(namespace, "pods", "", name)
        process = _start(pod, self.folder / name, self)
        self.pods[name] = process
        status = {"phase": "Running", "podIP": "127.0.0.1", "hostIP": "127.0.0.1"}
        state: Object = {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}}
        container = {"name": pod["spec"]["containers"][0]["name"], "ready": True}
        container |= {"image": "", "imageID": "", "restartCount": 0}
        status["containerStatuses"] = [{**container, "state": state}]  # type: ignore[assignment]
        self.patch(namespace, "pods", name, {"status": status})
        code = process.wait()
        code = code if code >= 0 else 128 - code
        state = {"running": None, "terminated": {"exitCode": code, "reason": "Error"}}
        status["phase"] = "Failed" if code else "Succeeded"
        status["containerStatuses"] = [{**container, "state": state}]  # type: ignore[assignment]
        self.patch(namespace, "pods", name, {"status": status})


def _start(pod: Object, folder: Path, api: KubernetesApi) -> subprocess.Popen[bytes]:
    """Start the executor of a pod as the entry point of Spark's image does."""
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["executor"], container["args"]
    fields = {"status.podIP": "127.0.0.1", "metadata.name": pod["metadata"]["name"]}
    given = {
        each["name"]: each["value"]
        if "value" in each
        else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    }
    folder.mkdir()
    options = [
        given[name]
        for name in sorted(
            (name for name in given if name.startswith("SPARK_JAVA_OPT_")),
            key=lambda name: int(name.rpartition("_")[2]),
        )
    ]
    memory = given["SPARK_EXECUTOR_MEMORY"]
    command = [str(find_java().executable), *options, f"-Xms{memory}", f"-Xmx{memory}"]
    command += ["-cp", f"{spark_home() / 'jars'}/*"]
    command += [api.main_class]
    for flag, name in (
        ("--driver-url", "SPARK_DRIVER_URL"),
        ("--executor-id", "SPARK_EXECUTOR_ID"),
        ("--cores", "SPARK_EXECUTOR_CORES"),
        ("--app-id", "SPARK_APPLICATION_ID"),
        ("--hostname", "SPARK_EXECUTOR_POD_IP"),
        ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
        ("--podName", "SPARK_EXECUTOR_POD_NAME"),
    ):
        command += [flag, given[name]]
    if api.hidden:
        mounts = " && ".join(f"mount -t tmpfs none '{path}'" for path in api.hidden)
        command = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "pod", *command]
    environment = {
        **given,
        "JAVA_HOME": str(find_java().home),
        "PATH": f"{api.python}:{os.environ['PATH']}",
        "SPARK_LOCAL_DIRS": str(folder),
        "TMPDIR": str(folder),
    }
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
            process_group=0,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_labels(each: Object, selector: str) -> bool:
    """Return whether an object has the labels of a selector.

    Selectors are ``a=b``, ``a!=b``, ``a``, ``!a``, sets.
    """
    labels = each["metadata"].get("labels", {})
    for term in re.findall(r"[^,(]+(?:\([^)]*\))?", selector):
        match = re.fullmatch(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)", term.strip())
        if match:
            values = {value.strip() for value in match[3].split(",")}
            holds = (labels.get(match[1]) in values) == (match[2] == "in")
        elif "!=" in term:
            name, _, value = term.partition("!=")
            holds = labels.get(name) != value
        elif "=" in term:
            name, _, value = term.partition("=")
            holds = labels.get(name) == value.removeprefix("=")
        else:
            holds = (term.lstrip("!") in labels) != term.startswith("!")
        if not holds:
            return False
    return True


def _merge(target: Object, patch: Object) -> None:
    """Apply a JSON merge patch (RFC 7396)."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            inner = target.setdefault(name, {})
            _merge(inner, value)
        else:
            target[name] = value


def _verb(method: str, *, has_name: bool, is_watch: bool) -> str:
    """Return the verb by which roles name a request."""
    match method:
        case "POST":
            return "create"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if has_name else "deletecollection"
        case _:
            return "watch" if is_watch else "get" if has_name else "list"


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    owner: KubernetesApi

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        url = urlsplit(self.path)
        if self.headers.get("Authorization") != f"Bearer {self.owner.token}":
            self._refuse(401, f"{self.command} {url.path}: no token")
            return
        match = _PATH.fullmatch(url.path)
        if match is None or match["kind"] not in _KINDS:
            self._refuse(404, f"{self.command} {url.path}: no such resource")
            return
        query = parse_qs(url.query)
        selector = query.get("labelSelector", [""])[0]
        place = match["namespace"], match["kind"]
        is_watch = query.get("watch") == ["true"]
        verb = _verb(self.command, has_name=bool(match["name"]), is_watch=is_watch)
        if not self.owner.permits(verb, match["kind"], match["namespace"]):
            self._refuse(403, f"cannot {verb} {match['kind']} in {match['namespace']}")
        elif self.command == "POST":
            self._create(place, json.loads(body))
        elif self.command == "PATCH":
            self._give(self.owner.patch(*place, match["name"] or "", json.loads(body)))
        elif self.command == "DELETE":
            self.owner.delete(*place, selector, match["name"])
            self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        elif is_watch:
            self._stream(place[1], selector, query)
        elif match["name"]:
            found = self.owner.select(*place, "", match["name"])
            self._give(found[0] if found else None)
        else:
            self._answer(200, self.owner.listed(*place, selector))

    def _create(self, place: tuple[str, str], posted: Object) -> None:
        try:
            made = self.owner.create(*place, posted)
        except ValueError as error:
            self._refuse(422, str(error))
        else:
            self._answer(201, made)

    def _give(self, found: Object | None) -> None:
        if found is None:
            self._answer(
                404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
            )
        else:
            self._answer(200, found)

    def _refuse(self, code: int, message: str) -> None:
        self.owner.refused.append(message)
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self._answer(code, {**status, "message": message, "code": code})

    def _answer(self, code: int, answer: Object) -> None:
        encoded = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def _stream(self, kind: str, selector: str, query: dict[str, list[str]]) -> None:
        """Send changes as messages of a WebSocket (RFC 6455).

        This goes on until the client or the server ends.
        """
        named = query.get("fieldSelector", [""])[0].removeprefix("metadata.name=")
        accepted = hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + _WEB_SOCKET).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(accepted).decode())
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            for change in self.owner.watch(kind):
                metadata = change["object"]["metadata"]
                if _has_labels(change["object"], selector) and named in ("", metadata["name"]):
                    text = json.dumps(change).encode()
                    self.wfile.write(struct.pack(">BBQ", 0x81, 127, len(text)) + text)
