"""Names of streams: the query, protocol and interfaces of each input, and the order of queries."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, Position, ResolveError
from gscope.queries.analysis.names.foreign_inputs import input_instead, synonym
from gscope.queries.analysis.names.query_names import (
    check_name,
    is_external,
    named_queries,
    saved_packets_file,
)
from gscope.queries.analysis.names.user_protocols import known_protocols
from gscope.queries.analysis.names.watchlists import define_watchlist
from gscope.queries.catalog.application_protocols import APPLICATION_PROTOCOLS
from gscope.queries.did_you_mean import did_you_mean, other_case
from gscope.queries.expressions.schema import free_name
from gscope.queries.gsql import nodes
from gscope.queries.gsql.printer import print_body, print_query
from gscope.queries.library.load import library_remedy, load_library_file
from gscope.queries.plan import part_names
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.plan.logical import Watchlist

_DEFAULT_SET = "default"


@dataclass(frozen=True, slots=True)
class ResolvedQueryInput:
    """An input that is the result of a query.

    Attributes:
        query: the name of the query in the query set.
        qualifiers: the names that may precede its columns, the alias first.
    """

    query: str
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedPacketInput:
    """An input that is the packets of a protocol.

    Attributes:
        protocol: the protocol.
        interfaces: the interfaces whose packets are read; () for any.
        qualifiers: the names that may precede its columns, the alias first.
    """

    protocol: Protocol
    interfaces: tuple[str, ...]
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedWatchlistInput:
    """An input that is a table.

    Attributes:
        watchlist: the table.
        qualifiers: the names that may precede its columns, the alias first.
    """

    watchlist: Watchlist
    qualifiers: tuple[str, ...]


ResolvedInput = ResolvedQueryInput | ResolvedPacketInput | ResolvedWatchlistInput


@dataclass(frozen=True, slots=True)
class NameEnvironment:
    """The names that all queries of some files can use in FROM.

    Attributes:
        protocols: protocols by name, built-in ones and those that the files define.
        queries: the name in the query set for each name of a query in the files.
    """

    protocols: Mapping[str, Protocol]
    queries: Mapping[str, str]


@dataclass(slots=True)
class QueryEntry:
    """One query with its inputs resolved; subqueries are queries of their own.

    For ``flows`` of ``WITH big AS (SELECT …) SELECT … FROM big, eth0.TCP``:

    Attributes:
        name: ``flows``, unique in the query set.
        file: the file that holds it.
        owner: the syntax with its DEFINE and PARAM.
        body: ``SELECT … FROM big, eth0.TCP``.
        text: the query as canonical text.
        environment: the protocols and queries that it can name.
        bindings: ``big``: the queries of every WITH around it.
        is_external: whether its result is delivered even if other queries read it.
        inputs: the query ``flows.big`` and the packets of TCP on eth0.
    """

    name: str
    file: nodes.File
    owner: nodes.Query
    body: nodes.Select | nodes.MergeQuery
    text: str
    environment: NameEnvironment
    bindings: Mapping[str, Binding]
    is_external: bool
    inputs: list[ResolvedInput] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Binding:
    """A query of a WITH.

    Attributes:
        name: its name in the query set.
        body: its syntax.
        seen: the bindings that it can name itself: those before it.
    """

    name: str
    body: nodes.Body
    seen: Mapping[str, Binding]


@dataclass(slots=True)
class QuerySet:
    """All queries by name, in the order in which they were found.

    Attributes:
        interfaces: the names of all interfaces; () if they are unknown, then any name is accepted.
        interface_sets: interfaces by the name of their set.
        hosts: the names of the hosts whose interfaces are read; those of the host ``a`` are called
            ``a.NAME``. () if packets are captured here.
        entries: every query, subqueries and those of the library that are read included.
        own: the queries of the files themselves, without subqueries and those of the library.
        watchlists: the tables, which are not in ``entries``.
        saved_packets: for queries that save their packets, the file for them, as written.
    """

    interfaces: tuple[str, ...]
    interface_sets: Mapping[str, tuple[str, ...]]
    hosts: tuple[str, ...] = ()
    entries: dict[str, QueryEntry] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    watchlists: dict[str, Watchlist] = field(default_factory=dict)
    saved_packets: dict[str, str] = field(default_factory=dict)
    _libraries: dict[str, NameEnvironment] = field(default_factory=dict)
    _library_queries: dict[str, tuple[nodes.Query, nodes.File, NameEnvironment]] = field(
        default_factory=dict
    )
    _unresolved: list[QueryEntry] = field(default_factory=list)
    _parts: set[str] = field(default_factory=set)

    def add_files(self, files: Sequence[nodes.File]) -> None:
        """Add all queries of ``files`` and resolve their inputs.

        Raises:
            GsqlError: a name is unknown, or two queries have it.
        """
        named = [(name, query, file) for file in files for name, query in named_queries(file)]
        taken = {name for name, _, _ in named}
        protocols = {
            name: protocol
            for name, protocol in known_protocols(files).items()
            if protocol is not APPLICATION_PROTOCOLS.get(name) or name not in taken
        }
        environment = NameEnvironment(protocols, {name: name for name, _, _ in named})
        for name, query, file in named:
            try:
                check_name(name, query, environment.protocols, self.own)
            except GsqlError as error:
                raise error.located(file.text, file.source) from None
            self.own.append(name)
        for name, query, file in named:
            self._add(name, file, query, environment)
        while self._unresolved:
            entry = self._unresolved.pop()
            try:
                entry.inputs = [self._resolve(entry, one) for one in entry.body.inputs]
            except GsqlError as error:
                raise error.located(entry.file.text, entry.file.source) from None

    def in_order(self, roots: Sequence[str]) -> list[QueryEntry]:
        """Return ``roots`` and all queries that they read, each before those that read it.

        Raises:
            ResolveError: a query reads itself, directly or through others.
        """
        ordered: dict[str, QueryEntry] = {}
        for root in roots:
            path = [root]
            pending = [self._reads(root)]
            while path:
                if not pending[-1]:
                    pending.pop()
                    name = path.pop()
                    ordered.setdefault(name, self.entries[name])
                    continue
                name = pending[-1].pop(0)
                if name in path:
                    raise self._cycle(path, name)
                if name not in ordered:
                    path.append(name)
                    pending.append(self._reads(name))
        return list(ordered.values())

    def _reads(self, name: str) -> list[str]:
        return [i.query for i in self.entries[name].inputs if isinstance(i, ResolvedQueryInput)]

    def _cycle(self, path: list[str], name: str) -> GsqlError:
        entry = self.entries[path[-1]]
        number = next(
            n
            for n, i in enumerate(entry.inputs)
            if isinstance(i, ResolvedQueryInput) and i.query == name
        )
        loop = " → ".join([*path[path.index(name) :], name])
        message = f"queries read each other in a cycle: {loop}"
        error = ResolveError(
            message,
            position=entry.body.inputs[number].position,
            remedy="let one of them read a protocol",
        )
        return error.located(entry.file.text, entry.file.source)

    def _add(
        self, name: str, file: nodes.File, query: nodes.Query, environment: NameEnvironment
    ) -> None:
        try:
            self._add_body(name, file, query, query.body, environment, {}, is_external(query))
            saved = saved_packets_file(query)
        except GsqlError as error:
            raise error.located(file.text, file.source) from None
        if saved is not None:
            self.saved_packets[name] = saved

    def _add_body(
        self,
        name: str,
        file: nodes.File,
        owner: nodes.Query,
        body: nodes.Body,
        environment: NameEnvironment,
        bindings: Mapping[str, Binding],
        is_external: bool,
    ) -> None:
        text = print_query(owner) if body is owner.body else print_body(body)
        while isinstance(body, nodes.With):
            for bound in body.bindings:
                _check_binding(bound, environment.protocols, bindings)
                own = Binding(self._own_name(name, bound.name), bound.body, bindings)
                bindings = {**bindings, bound.name: own}
            body = body.body
        if isinstance(body, nodes.WatchlistQuery):
            self.watchlists[name] = define_watchlist(name, owner, body, file.source)
            return
        entry = QueryEntry(name, file, owner, body, text, environment, bindings, is_external)
        self.entries[name] = entry
        self._unresolved.append(entry)

    def _resolve(self, entry: QueryEntry, one: nodes.Input) -> ResolvedInput:
        if isinstance(one, nodes.SubqueryInput):
            name = self._own_name(entry.name, one.alias or "sub")
            self._add_body(
                name, entry.file, entry.owner, one.body, entry.environment, entry.bindings, False
            )
            return ResolvedQueryInput(name, (one.alias or name,))
        qualifiers = (one.alias, one.name) if one.alias else (one.name,)
        if one.library is not None:
            return self._reading(self._from_library(one), qualifiers)
        protocols, queries = entry.environment.protocols, entry.environment.queries
        if one.interface is not None or one.interface_set is not None:
            return ResolvedPacketInput(
                self._protocol(one, protocols), self._interfaces(one), qualifiers
            )
        if one.name in entry.bindings:
            return self._reading(self._bound(entry, entry.bindings[one.name]), qualifiers)
        known = [*queries, *protocols]
        name = one.name
        if name not in known:
            name = other_case(name, queries) or other_case(name, known) or name
        if name in queries:
            return self._reading(self._met(queries[name]), qualifiers)
        found = protocols.get(name) or synonym(name, protocols)
        if found is not None:
            return ResolvedPacketInput(found, self._interfaces(one), qualifiers)
        message = f"unknown query or protocol {one.name}"
        near = did_you_mean(one.name, [*known, *entry.bindings], "available")
        instead = input_instead(one, self.interfaces)
        remedy = library_remedy(one.name) or instead or near
        raise ResolveError(message, position=one.position, remedy=remedy)

    def _reading(
        self, name: str, qualifiers: tuple[str, ...]
    ) -> ResolvedQueryInput | ResolvedWatchlistInput:
        if name in self.watchlists:
            return ResolvedWatchlistInput(self.watchlists[name], qualifiers)
        return ResolvedQueryInput(name, qualifiers)

    def _own_name(self, query: str, part: str) -> str:
        """Return a name for a subquery that no other query of the set has or will get."""
        taken = self._parts | {f"{query}.{word}" for word in part_names.RESERVED}
        name = free_name(f"{query}.{part}", taken)
        self._parts.add(name)
        return name

    def _bound(self, entry: QueryEntry, binding: Binding) -> str:
        if binding.name not in {*self.entries, *self.watchlists}:
            self._add_body(
                binding.name,
                entry.file,
                entry.owner,
                binding.body,
                entry.environment,
                binding.seen,
                False,
            )
        return binding.name

    def _from_library(self, reference: nodes.NamedInput) -> str:
        """Return the query of a library file: the one with the file's name, else the last."""
        place = f"{reference.library}/{reference.name}"
        if place not in self._libraries:
            self._open_library(place, load_library_file(reference))
        queries = self._libraries[place].queries
        if not queries:
            message = f"the library file {place} has no query"
            raise ResolveError(message, position=reference.position)
        return self._met(queries.get(reference.name, list(queries.values())[-1]))

    def _open_library(self, place: str, file: nodes.File) -> None:
        prefix = place.replace("/", ".")
        named = named_queries(file)
        environment = NameEnvironment(
            known_protocols([file]), {name: f"{prefix}.{name}" for name, _ in named}
        )
        self._libraries[place] = environment
        for name, query in named:
            self._library_queries[f"{prefix}.{name}"] = query, file, environment

    def _met(self, name: str) -> str:
        """Return ``name``, after adding the query to the set if it is one of the library."""
        is_met = name in self.entries or name in self.watchlists
        if not is_met and name in self._library_queries:
            query, file, environment = self._library_queries[name]
            self._add(name, file, query, environment)
        return name

    def _interfaces(self, reference: nodes.NamedInput) -> tuple[str, ...]:
        if reference.host is not None:
            return (self._interface_of_host(reference, reference.host),)
        if reference.interface is not None:
            if on_hosts := self._on_hosts(reference.interface):
                return on_hosts
            self._check_interface(reference.interface, reference.position)
            return (reference.interface,)
        wanted = reference.interface_set or _DEFAULT_SET
        if wanted in self.interface_sets:
            members = self.interface_sets[wanted]
            for member in members:
                self._check_interface(member, reference.position)
            return members
        if wanted == _DEFAULT_SET or not self.interfaces:
            return self.interfaces
        message = f"unknown interface set {wanted}"
        remedy = did_you_mean(wanted, [*self.interface_sets, _DEFAULT_SET], "available sets")
        raise ResolveError(message, position=reference.position, remedy=remedy)

    def _interface_of_host(self, reference: nodes.NamedInput, host: str) -> str:
        """Return the name of one interface of one host.

        Raises:
            ResolveError: there is no such host, or it has no such interface.
        """
        name = f"{host}.{reference.interface}"
        if self.interfaces and host not in self.hosts:
            message = f"unknown host {host}"
            if self.hosts:
                remedy = did_you_mean(host, self.hosts, "available hosts")
            else:
                remedy = (
                    f"name it with --host {host}=HOST:PORT; an interface called {name!r} of this "
                    f"host is '{name}'.{reference.name}"
                )
            raise ResolveError(message, position=reference.position, remedy=remedy)
        self._check_interface(name, reference.position)
        return name

    def _on_hosts(self, interface: str) -> tuple[str, ...]:
        """Return the interfaces of that name, one of each host that has it."""
        names = (f"{host}.{interface}" for host in self.hosts)
        return tuple(name for name in names if name in self.interfaces)

    def _protocol(self, reference: nodes.NamedInput, protocols: Mapping[str, Protocol]) -> Protocol:
        name = reference.name
        found = protocols.get(name) or protocols.get(other_case(name, protocols) or "")
        found = found or synonym(name, protocols)
        if found is None:
            message = f"unknown protocol {name}"
            near = did_you_mean(name, protocols, "available protocols")
            remedy = input_instead(reference, self.interfaces) or near
            raise ResolveError(message, position=reference.position, remedy=remedy)
        return found

    def _check_interface(self, name: str, position: Position) -> None:
        if self.interfaces and name not in self.interfaces:
            message = f"unknown interface {name}"
            remedy = did_you_mean(name, self.interfaces, "available interfaces")
            raise ResolveError(message, position=position, remedy=remedy)


def _check_binding(
    bound: nodes.WithBinding, protocols: Mapping[str, Protocol], bindings: Mapping[str, Binding]
) -> None:
    if bound.name in protocols:
        message = f"a subquery cannot have the name of the protocol {bound.name}"
    elif bound.name in bindings:
        message = f"two subqueries are called {bound.name}"
    else:
        return
    raise ResolveError(message, position=bound.position, remedy="give it another name")
