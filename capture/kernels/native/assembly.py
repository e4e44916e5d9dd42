"""LLVM assembly, written as text at once: the part of ``llvmlite.ir`` that kernels need.

``llvmlite.ir`` keeps each instruction as an object with a unique name, and makes the text of all of
them at the end. That takes two thirds of the time in which a kernel is translated. Classes and
methods here have the names and meanings that they have there, so that intrinsics are built by the
same code for numba; types and constants are those of llvmlite.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from llvmlite import ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_I1 = ir.IntType(1)
_ORDERED = {"==": "oeq", "!=": "one", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_TYPES = (*map(ir.IntType, (1, 8, 16, 32, 64, 128)), ir.DoubleType())
"""Types of which there is one object each."""

_NAMES = {id(of): str(of) for of in _TYPES}


class Word:
    """A value of an instruction, or an argument; ``reference`` is its name in the assembly."""

    __slots__ = ("reference", "type")

    def __init__(self, of: Any, reference: str) -> None:
        self.type = of
        self.reference = reference

    def get_reference(self) -> str:
        """Return the name of the value."""
        return self.reference


class Phi(Word):
    """A value that depends on the block from which control came."""

    __slots__ = ("_incoming",)

    def __init__(self, of: Any, reference: str) -> None:
        super().__init__(of, reference)
        self._incoming: list[str] = []

    def add_incoming(self, value: Any, block: Block) -> None:
        """Add the value for control that comes from ``block``."""
        self._incoming.append(f"[{value.get_reference()}, %{block.name}]")

    def __str__(self) -> str:
        """Return the instruction."""
        return f"  {self.reference} = phi {_name(self.type)} {', '.join(self._incoming)}"


class Block:
    """A basic block: its instructions, the last of which ends it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str | Phi] = []
        self.is_terminated = False


class Function:
    """A function of a module, without blocks until some are appended.

    Args:
        module: the module.
        signature: the type of the function.
        name: its unique name.

    Attributes:
        args: its arguments.
        linkage: how other modules see it; "" for an exported function.
        attributes: words that stand behind its head.
    """

    def __init__(self, module: Module, signature: Any, name: str) -> None:
        self.signature = signature
        self.args = [Word(of, f"%a{n}") for n, of in enumerate(signature.args)]
        self.linkage = ""
        self.attributes: set[str] = set()
        self.blocks: list[Block] = []
        self.values = 0
        self.module = module
        self.reference = f'@"{name}"'
        self._text: str | None = None
        module.functions.append(self)

    def get_reference(self) -> str:
        """Return the name of the function."""
        return self.reference

    def clear(self) -> None:
        """Remove all blocks."""
        self.blocks = []
        self.values = 0

    def append_basic_block(self, name: str) -> Block:
        """Append an empty block."""
        block = Block(f"{name}.{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def end(self, text: str | None = None) -> None:
        """Note that the function is complete.

        Args:
            text: its definition, for one that was written otherwise; None for its blocks.
        """
        self._text = text or str(self)
        self.blocks = []

    def __str__(self) -> str:
        """Return the definition of the function."""
        if self._text is not None:
            return self._text
        given = ", ".join(f"{_name(arg.type)} {arg.reference}" for arg in self.args)
        words = ["define", self.linkage, _returned(self.signature.return_type)]
        head = " ".join(filter(None, words)) + f" {self.reference}({given})"
        lines = [" ".join([head, *sorted(self.attributes), "{"])]
        for block in self.blocks:
            lines.append(f"{block.name}:")
            lines += map(str, block.lines)
        return "\n".join([*lines, "}"])


class Module:
    """A module: functions that are defined, and declarations of others.

    Attributes:
        functions: the functions that are defined.
        globals: the functions that are only declared, by name.
    """

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.globals: dict[str, Any] = {}
        self._names: dict[str, int] = {}
        # llvmlite derives the names of intrinsics from types, and makes their declarations.
        self._declarations = ir.Module()

    def get_unique_name(self, name: str) -> str:
        """Return ``name``, with a number if a function has that name already."""
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}.{number}" if number else name

    def declare(self, name: str, signature: Any) -> Any:
        """Return a function of another module or of the C library."""
        if name not in self.globals:
            self.globals[name] = ir.Function(self._declarations, signature, name)
        return self.globals[name]

    def declare_intrinsic(self, name: str, types: Sequence[Any] = (), signature: Any = None) -> Any:
        """Return an intrinsic of LLVM for arguments of some types."""
        found = self._declarations.declare_intrinsic(name, types, signature)
        self.globals[found.name] = found
        return found

    def __str__(self) -> str:
        """Return the assembly of the module."""
        return "\n".join(map(str, (*self.globals.values(), *self.functions)))


class Builder:
    """Appends instructions to a block of a function; see ``llvmlite.ir.IRBuilder``."""

    def __init__(self, function: Function, block: Block) -> None:
        self._function = function
        self.block = block
        self._lines = block.lines

    @property
    def module(self) -> Module:
        """The module of the function."""
        return self._function.module

    def position_at_end(self, block: Block) -> None:
        """Continue at the end of ``block``."""
        self.block = block
        self._lines = block.lines

    @contextmanager
    def goto_entry_block(self) -> Iterator[None]:
        """Meanwhile, work at the beginning of the function."""
        lines, self._lines = self._lines, []
        yield
        self._function.blocks[0].lines[:0] = self._lines
        self._lines = lines

    def _made(self, of: Any, text: str) -> Word:
        """Append an instruction that gives a value of a type."""
        function = self._function
        function.values += 1
        reference = f"%v{function.values}"
        self._lines.append(f"  {reference} = {text}")
        return Word(of, reference)

    def _two(self, operation: str, a: Any, b: Any) -> Word:
        return self._made(
            a.type, f"{operation} {_name(a.type)} {a.get_reference()}, {b.get_reference()}"
        )

    def _converted(self, operation: str, value: Any, of: Any) -> Any:
        if value.type == of:
            return value
        return self._made(of, f"{operation} {_typed(value)} to {_name(of)}")

    # -- memory ----------------------------------------------------------------------------------

    def alloca(self, of: Any) -> Word:
        """Reserve room for a value; return a pointer to it."""
        return self._made(of.as_pointer(), f"alloca {_name(of)}")

    def load(self, pointer: Any, align: int | None = None) -> Word:
        """Load what a pointer points to."""
        of = pointer.type.pointee
        end = "" if align is None else f", align {align}"
        return self._made(of, f"load {_name(of)}, ptr {pointer.get_reference()}{end}")

    def store(self, value: Any, pointer: Any, align: int | None = None) -> None:
        """Store a value where a pointer points."""
        end = "" if align is None else f", align {align}"
        self._lines.append(f"  store {_typed(value)}, ptr {pointer.get_reference()}{end}")

    def load_atomic(self, pointer: Any, ordering: str, align: int) -> Word:
        """Load as one memory operation."""
        of = pointer.type.pointee
        place = f"ptr {pointer.get_reference()} {ordering}, align {align}"
        return self._made(of, f"load atomic {_name(of)}, {place}")

    def store_atomic(self, value: Any, pointer: Any, ordering: str, align: int) -> None:
        """Store as one memory operation."""
        place = f"ptr {pointer.get_reference()} {ordering}, align {align}"
        self._lines.append(f"  store atomic {_typed(value)}, {place}")

    def gep(self, pointer: Any, numbers: Sequence[Any]) -> Word:
        """Return a pointer to an element behind a pointer."""
        places = ", ".join(map(_typed, numbers))
        of = _name(pointer.type.pointee)
        return self._made(
            pointer.type, f"getelementptr {of}, ptr {pointer.get_reference()}, {places}"
        )

    # -- operations ------------------------------------------------------------------------------

    def add(self, a: Any, b: Any, flags: Sequence[str] = ()) -> Word:
        """Add integers."""
        return self._two(_flagged("add", flags), a, b)

    def sub(self, a: Any, b: Any, flags: Sequence[str] = ()) -> Word:
        """Subtract integers."""
        return self._two(_flagged("sub", flags), a, b)

    def mul(self, a: Any, b: Any, flags: Sequence[str] = ()) -> Word:
        """Multiply integers."""
        return self._two(_flagged("mul", flags), a, b)

    def neg(self, value: Any) -> Word:
        """Negate an integer."""
        return self._two("sub", value.type(0), value)

    def not_(self, value: Any) -> Word:
        """Invert all bits."""
        return self._two("xor", value, value.type(-1))

    def fneg(self, value: Any) -> Word:
        """Negate a float."""
        return self._made(value.type, f"fneg {_typed(value)}")

    def fadd(self, a: Any, b: Any) -> Word:
        """Add floats."""
        return self._two("fadd", a, b)

    def fsub(self, a: Any, b: Any) -> Word:
        """Subtract floats."""
        return self._two("fsub", a, b)

    def fmul(self, a: Any, b: Any) -> Word:
        """Multiply floats."""
        return self._two("fmul", a, b)

    def fdiv(self, a: Any, b: Any) -> Word:
        """Divide floats."""
        return self._two("fdiv", a, b)

    def frem(self, a: Any, b: Any) -> Word:
        """Return the remainder of floats, with the sign of the first."""
        return self._two("frem", a, b)

    def sdiv(self, a: Any, b: Any) -> Word:
        """Divide signed integers, rounding to zero."""
        return self._two("sdiv", a, b)

    def srem(self, a: Any, b: Any) -> Word:
        """Return the remainder of signed integers, with the sign of the first."""
        return self._two("srem", a, b)

    def udiv(self, a: Any, b: Any) -> Word:
        """Divide unsigned integers."""
        return self._two("udiv", a, b)

    def and_(self, a: Any, b: Any) -> Word:
        """Combine bits by AND."""
        return self._two("and", a, b)

    def or_(self, a: Any, b: Any) -> Word:
        """Combine bits by OR."""
        return self._two("or", a, b)

    def xor(self, a: Any, b: Any) -> Word:
        """Combine bits by exclusive OR."""
        return self._two("xor", a, b)

    def shl(self, a: Any, b: Any) -> Word:
        """Shift to the left."""
        return self._two("shl", a, b)

    def lshr(self, a: Any, b: Any) -> Word:
        """Shift to the right; zeros follow."""
        return self._two("lshr", a, b)

    def ashr(self, a: Any, b: Any) -> Word:
        """Shift to the right; the sign follows."""
        return self._two("ashr", a, b)

    def bswap(self, value: Any) -> Word:
        """Reverse the bytes."""
        return self._intrinsic("bswap", value)

    def ctpop(self, value: Any) -> Word:
        """Count the bits that are set."""
        return self._intrinsic("ctpop", value)

    def ctlz(self, value: Any, is_poison: Any) -> Word:
        """Count the leading zeros; ``is_poison``: of 0 they are undefined."""
        return self._intrinsic("ctlz", value, is_poison)

    def cttz(self, value: Any, is_poison: Any) -> Word:
        """Count the trailing zeros; see ``ctlz``."""
        return self._intrinsic("cttz", value, is_poison)

    def _intrinsic(self, name: str, *values: Any) -> Word:
        of = values[0].type
        signature = ir.FunctionType(of, [value.type for value in values])
        return self.call(self.module.declare_intrinsic(f"llvm.{name}", [of], signature), values)

    def icmp_signed(self, operator: str, a: Any, b: Any) -> Word:
        """Compare signed integers."""
        return self._compared("icmp", _integer_test(operator, "s"), a, b)

    def icmp_unsigned(self, operator: str, a: Any, b: Any) -> Word:
        """Compare unsigned integers."""
        return self._compared("icmp", _integer_test(operator, "u"), a, b)

    def fcmp_ordered(self, operator: str, a: Any, b: Any) -> Word:
        """Compare floats; false with NaN."""
        return self._compared("fcmp", _ORDERED[operator], a, b)

    def fcmp_unordered(self, operator: str, a: Any, b: Any) -> Word:
        """Compare floats; true with NaN."""
        return self._compared("fcmp", f"u{_ORDERED[operator][1:]}", a, b)

    def _compared(self, instruction: str, test: str, a: Any, b: Any) -> Word:
        return self._made(_I1, f"{instruction} {test} {_typed(a)}, {b.get_reference()}")

    def select(self, condition: Any, a: Any, b: Any) -> Word:
        """Choose one of two values."""
        return self._made(a.type, f"select {_typed(condition)}, {_typed(a)}, {_typed(b)}")

    def phi(self, of: Any) -> Phi:
        """Begin a value that depends on the block from which control came."""
        self._function.values += 1
        made = Phi(of, f"%v{self._function.values}")
        self._lines.append(made)
        return made

    def extract_value(self, record: Any, number: int) -> Word:
        """Return a part of a structure."""
        return self._made(record.type.elements[number], f"extractvalue {_typed(record)}, {number}")

    def insert_value(self, record: Any, value: Any, number: int) -> Word:
        """Return a structure with another value in one part."""
        return self._made(record.type, f"insertvalue {_typed(record)}, {_typed(value)}, {number}")

    def call(self, function: Any, arguments: Iterable[Any]) -> Word:
        """Call a function, or what a pointer points to."""
        signature = getattr(function, "signature", None)
        if signature is None:
            # A declaration of llvmlite, or a pointer to a function.
            signature = getattr(function, "function_type", None) or function.type.pointee
        given = ", ".join(map(_typed, arguments))
        of = signature.return_type
        text = f"call {_returned(of)} {function.get_reference()}({given})"
        if isinstance(of, ir.VoidType):
            self._lines.append(f"  {text}")
            return Word(of, "")
        return self._made(of, text)

    # -- conversions -----------------------------------------------------------------------------

    def zext(self, value: Any, of: Any) -> Any:
        """Widen an unsigned integer."""
        return self._converted("zext", value, of)

    def sext(self, value: Any, of: Any) -> Any:
        """Widen a signed integer."""
        return self._converted("sext", value, of)

    def trunc(self, value: Any, of: Any) -> Any:
        """Narrow an integer."""
        return self._converted("trunc", value, of)

    def sitofp(self, value: Any, of: Any) -> Any:
        """Convert a signed integer to a float."""
        return self._converted("sitofp", value, of)

    def uitofp(self, value: Any, of: Any) -> Any:
        """Convert an unsigned integer to a float."""
        return self._converted("uitofp", value, of)

    def fptosi(self, value: Any, of: Any) -> Any:
        """Convert a float to a signed integer."""
        return self._converted("fptosi", value, of)

    def inttoptr(self, value: Any, of: Any) -> Any:
        """Return the pointer to an address."""
        return self._converted("inttoptr", value, of)

    def ptrtoint(self, value: Any, of: Any) -> Any:
        """Return the address of a pointer."""
        return self._converted("ptrtoint", value, of)

    def bitcast(self, value: Any, of: Any) -> Any:
        """Take the bits as another type."""
        return self._converted("bitcast", value, of)

    # -- control ---------------------------------------------------------------------------------

    def branch(self, target: Block) -> None:
        """Go to a block."""
        self._end(f"br label %{target.name}")

    def cbranch(self, condition: Any, yes: Block, no: Block) -> None:
        """Go to one of two blocks."""
        self._end(f"br {_typed(condition)}, label %{yes.name}, label %{no.name}")

    def ret(self, value: Any) -> None:
        """Return a value."""
        self._end(f"ret {_typed(value)}")

    def ret_void(self) -> None:
        """Return without a value."""
        self._end("ret void")

    def unreachable(self) -> None:
        """State that control never comes here."""
        self._end("unreachable")

    def _end(self, text: str) -> None:
        self._lines.append(f"  {text}")
        self.block.is_terminated = True


def _flagged(operation: str, flags: Sequence[str]) -> str:
    return f"{operation} {' '.join(flags)}" if flags else operation


def _integer_test(operator: str, sign: str) -> str:
    test = _COMPARED[operator]
    return test if operator in ("==", "!=") else f"{sign}{test}"


def _name(of: Any) -> str:
    """Return the name of a type."""
    found = _NAMES.get(id(of))
    if found is not None:
        return found
    return "ptr" if isinstance(of, ir.PointerType) else str(of)


def _returned(of: Any) -> str:
    """Return the type of a result; of a bit also how it is widened, for LLVM's fast selection."""
    return "zeroext i1" if of is _I1 else _name(of)


def _typed(value: Any) -> str:
    return f"{_name(value.type)} {value.get_reference()}"
