"""Building blocks for LLVM IR: functions written in Python that read like the loops they become.

    f = Function("scale", x="ptr", n="i64", by="float")
    with f.loop(0, f.n, 8) as i:
        f.store(f.load(vector(8, "float"), f.at(f.x, i * 4)) * f.splat(f.by, 8), f.at(f.x, i * 4))
    print(f)

A `Value` is an SSA value with its type; + - * and comparisons of two values append the instruction. Types are LLVM's own
words ("i64", "float", "<8 x float>", "ptr"). Integers are signed unless the method says otherwise. Floating point has no
fast-math flags: NaN, infinities and -0.0 come out as written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .ir_types import BITS, FLOATS, SHORT, element, is_float, lanes, literal, size, vector


class Value:
    """An SSA value of one function."""

    __slots__ = ("f", "text", "type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, f: Function, kind: str, text: str) -> None:
        self.f, self.type, self.text = f, kind, text

    def _with(self, op: str, other: Any, *, swap: bool = False) -> Value:
        b = self.f.value(self.type, other)
        x, y = (b, self) if swap else (self, b)
        return self.f.emit(self.type, f"{op} {self.type} {x.text}, {y.text}")

    def _kind(self, whole: str, real: str) -> str:
        return real if is_float(self.type) else whole

    def __add__(self, other: Any) -> Value:
        return self._with(self._kind("add", "fadd"), other)

    def __sub__(self, other: Any) -> Value:
        return self._with(self._kind("sub", "fsub"), other)

    def __mul__(self, other: Any) -> Value:
        return self._with(self._kind("mul", "fmul"), other)

    def __truediv__(self, other: Any) -> Value:
        return self._with("fdiv", other)

    def __floordiv__(self, other: Any) -> Value:
        """Integer division toward zero."""
        return self._with("sdiv", other)

    def __mod__(self, other: Any) -> Value:
        """What integer division toward zero leaves."""
        return self._with("srem", other)

    def __and__(self, other: Any) -> Value:
        return self._with("and", other)

    def __or__(self, other: Any) -> Value:
        return self._with("or", other)

    def __xor__(self, other: Any) -> Value:
        return self._with("xor", other)

    def __invert__(self) -> Value:
        return self._with("xor", True if element(self.type) == "i1" else -1)

    def __lshift__(self, other: Any) -> Value:
        return self._with("shl", other)

    def __rshift__(self, other: Any) -> Value:
        """Shift that brings zeros in."""
        return self._with("lshr", other)

    def __neg__(self) -> Value:
        if is_float(self.type):
            return self.f.emit(self.type, f"fneg {self.type} {self.text}")
        return self._with("sub", 0, swap=True)

    def compare(self, word: str, other: Any) -> Value:
        """A lane of i1 for each element; `word` as LLVM's icmp or fcmp has it."""
        b = self.f.value(self.type, other)
        op = "fcmp" if is_float(self.type) else "icmp"
        return self.f.emit(vector(lanes(self.type), "i1"), f"{op} {word} {self.type} {self.text}, {b.text}")

    def __lt__(self, other: Any) -> Value:
        return self.compare(self._kind("slt", "olt"), other)

    def __le__(self, other: Any) -> Value:
        return self.compare(self._kind("sle", "ole"), other)

    def __gt__(self, other: Any) -> Value:
        return self.compare(self._kind("sgt", "ogt"), other)

    def __ge__(self, other: Any) -> Value:
        return self.compare(self._kind("sge", "oge"), other)

    def eq(self, other: Any) -> Value:
        return self.compare(self._kind("eq", "oeq"), other)

    def ne(self, other: Any) -> Value:
        """Different; a NaN is, from everything."""
        return self.compare(self._kind("ne", "une"), other)

    def below(self, other: Any) -> Value:
        """Unsigned less-than: `i.below(n)` is 0 <= i < n."""
        return self.compare("ult", other)

    def is_nan(self) -> Value:
        return self.compare("uno", self)

    def to(self, kind: str) -> Value:
        """Converted in value: integers sign-extended, floats rounded to nearest. Lanes stay."""
        kind = vector(lanes(self.type), element(kind))
        if kind == self.type:
            return self
        source, target = element(self.type), element(kind)
        if source in FLOATS and target in FLOATS:
            op = "fpext" if BITS[target] > BITS[source] else "fptrunc"
        elif source in FLOATS:
            op = "fptosi"
        elif target in FLOATS:
            op = "uitofp" if source == "i1" else "sitofp"
        else:
            op = "trunc" if BITS[target] < BITS[source] else "zext" if source == "i1" else "sext"
        return self.f.emit(kind, f"{op} {self.type} {self.text} to {kind}")

    def widened(self, kind: str) -> Value:
        """An unsigned integer in a wider type."""
        kind = vector(lanes(self.type), element(kind))
        return self if kind == self.type else self.f.emit(kind, f"zext {self.type} {self.text} to {kind}")

    def bits(self, kind: str) -> Value:
        """The same bits as another type of the same size."""
        return self if kind == self.type else self.f.emit(kind, f"bitcast {self.type} {self.text} to {kind}")


class Variable:
    """A place in the frame that loops may change; LLVM makes registers of it."""

    __slots__ = ("f", "place", "type")

    def __init__(self, f: Function, kind: str, place: Value) -> None:
        self.f, self.type, self.place = f, kind, place

    def get(self) -> Value:
        return self.f.emit(self.type, f"load {self.type}, ptr {self.place.text}")

    def set(self, value: Any) -> None:
        self.f.line(f"store {self.type} {self.f.value(self.type, value).text}, ptr {self.place.text}")


class Function:
    """One function being written. Arguments are attributes: `Function("f", x="ptr")` has `f.x`."""

    def __init__(self, name: str, *, private: bool = False, result: str = "void", **arguments: str) -> None:
        self.name, self.private, self.result, self.arguments = name, private, result, arguments
        self._lines: list[str] = []
        self._places: list[str] = []
        self._count = 0
        self._block = "start"
        self.declarations: set[str] = set()

    def __getattr__(self, name: str) -> Value:
        arguments = self.__dict__.get("arguments", {})
        if name not in arguments:
            raise AttributeError(name)
        return Value(self, arguments[name], f"%{name}")

    def __str__(self) -> str:
        arguments = ", ".join(f"{kind} %{name}" for name, kind in self.arguments.items())
        head = f"define {'internal ' if self.private else ''}{self.result} @{self.name}({arguments}) {{"
        places = ["entry:", *(f"  {line}" for line in self._places), "  br label %start", "start:"]
        end = ["  ret void"] if self.result == "void" else []
        return "\n".join([head, *places, *self._lines, *end, "}"])

    # Instructions

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def emit(self, kind: str, text: str) -> Value:
        """Append an instruction that gives a value."""
        name = f"%t{self._name()}"
        self._lines.append(f"  {name} = {text}")
        return Value(self, kind, name)

    def value(self, kind: str, value: Any) -> Value:
        """A Python number, or one a lane, as a constant; a value as it is."""
        if isinstance(value, Value):
            if value.type != kind:
                raise TypeError(f"{value.type} where {kind} is needed in {self.name}")
            return value
        return Value(self, kind, literal(kind, value))

    def call(self, kind: str, name: str, *arguments: Value) -> Value:
        """Call a function or an intrinsic, which is declared if it is one of LLVM's or C's."""
        given = ", ".join(f"{a.type} {a.text}" for a in arguments)
        if "." in name or name in C_FUNCTIONS:
            self.declarations.add(f"declare {kind} @{name}({', '.join(a.type for a in arguments)})")
        if kind == "void":
            self.line(f"call void @{name}({given})")
            return Value(self, kind, "")
        return self.emit(kind, f"call {kind} @{name}({given})")

    def give(self, value: Value) -> None:
        """Return this value."""
        self.line(f"ret {value.type} {value.text}")

    # Memory

    def at(self, pointer: Value, offset: Any) -> Value:
        """A pointer `offset` bytes further."""
        if not isinstance(offset, Value) and offset == 0:
            return pointer
        return self.emit("ptr", f"getelementptr i8, ptr {pointer.text}, i64 {self.value('i64', offset).text}")

    def load(self, kind: str, pointer: Value, *, mask: Value | None = None, other: Any = 0) -> Value:
        """Unaligned load; with a mask, lanes that are off read `other` and touch no memory."""
        step = BITS[element(kind)] // 8
        if mask is None:
            return self.emit(kind, f"load {kind}, ptr {pointer.text}, align {step}")
        name = f"llvm.masked.load.{self._suffix(kind)}.p0"
        self.declarations.add(f"declare {kind} @{name}(ptr, i32, {mask.type}, {kind})")
        fill = self.value(kind, other)
        given = f"ptr {pointer.text}, i32 {step}, {mask.type} {mask.text}, {kind} {fill.text}"
        return self.emit(kind, f"call {kind} @{name}({given})")

    def store(self, value: Value, pointer: Value, *, mask: Value | None = None, streaming: bool = False) -> None:
        """Unaligned store; lanes whose mask is off stay. `streaming` goes past the caches and needs aligned memory."""
        kind, step = value.type, BITS[element(value.type)] // 8
        if mask is None:
            how = f"align {size(kind)}, !nontemporal !0" if streaming else f"align {step}"
            self.line(f"store {kind} {value.text}, ptr {pointer.text}, {how}")
            return
        name = f"llvm.masked.store.{self._suffix(kind)}.p0"
        self.declarations.add(f"declare void @{name}({kind}, ptr, i32, {mask.type})")
        self.line(f"call void @{name}({kind} {value.text}, ptr {pointer.text}, i32 {step}, {mask.type} {mask.text})")

    def field(self, table: Value, index: int) -> Value:
        """Number `index` of a table of i64: how kernels receive their geometry."""
        return self.emit("i64", f"load i64, ptr {self.at(table, 8 * index).text}, align 8, !invariant.load !1")

    def variable(self, kind: str, start: Any) -> Variable:
        """A place for a value that changes, set to `start` here."""
        made = Variable(self, kind, self.scratch(kind, 1))
        made.set(start)
        return made

    def scratch(self, kind: str, count: int, align: int = 0) -> Value:
        """Room for `count` values in this call's frame, not initialised."""
        name = f"%p{self._name()}"
        self._places.append(f"{name} = alloca {kind}, i64 {count}" + (f", align {align}" if align else ""))
        return Value(self, "ptr", name)

    # Lanes

    def splat(self, value: Value, count: int) -> Value:
        """The same value in every lane."""
        if count == 1:
            return value
        wide = vector(count, value.type)
        one = self.emit(wide, f"insertelement {wide} poison, {value.type} {value.text}, i64 0")
        return self.shuffle(one, one, [0] * count)

    def shuffle(self, a: Value, b: Value, places: Sequence[int]) -> Value:
        """Lanes picked from a and then b, counted through; -1 leaves a lane open."""
        if len(places) == 1:
            n = lanes(a.type)
            return self.lane(a if places[0] < n else b, places[0] % n)
        if lanes(a.type) == 1:
            made = Value(self, vector(len(places), a.type), "poison")
            for k, p in enumerate(places):
                if p >= 0:
                    made = self.emit(made.type, f"insertelement {made.type} {made.text}, {a.type} {(a, b)[p].text}, i64 {k}")
            return made
        mask = ", ".join("i32 poison" if p < 0 else f"i32 {p}" for p in places)
        kind = vector(len(places), element(a.type))
        return self.emit(kind, f"shufflevector {a.type} {a.text}, {b.type} {b.text}, <{len(places)} x i32> <{mask}>")

    def lane(self, value: Value, index: int) -> Value:
        """One element of a vector; of a scalar, itself."""
        if lanes(value.type) == 1:
            return value
        return self.emit(element(value.type), f"extractelement {value.type} {value.text}, i64 {index}")

    def joined(self, parts: Sequence[Value]) -> Value:
        """Equal vectors one behind the other; the last again until there is a power of two of them."""
        values = [*parts, *[parts[-1]] * ((1 << (len(parts) - 1).bit_length()) - len(parts))]
        while len(values) > 1:
            n = lanes(values[0].type)
            values = [self.shuffle(a, b, range(2 * n)) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def select(self, condition: Value, a: Any, b: Any) -> Value:
        """Lane by lane a where the condition holds, else b; one of the two must be a value."""
        kind = a.type if isinstance(a, Value) else b.type
        x, y = self.value(kind, a), self.value(kind, b)
        if lanes(condition.type) == 1 and lanes(kind) > 1:
            return self.emit(kind, f"select i1 {condition.text}, {kind} {x.text}, {kind} {y.text}")
        return self.emit(kind, f"select {condition.type} {condition.text}, {kind} {x.text}, {kind} {y.text}")

    def smaller(self, a: Value, b: Any) -> Value:
        """The smaller of two integers."""
        return self.select(a < b, a, b)

    def larger(self, a: Value, b: Any) -> Value:
        """The larger of two integers."""
        return self.select(a > b, a, b)

    def any(self, condition: Value) -> Value:
        """Whether some lane is true."""
        n = lanes(condition.type)
        return condition if n == 1 else condition.bits(f"i{n}").compare("ne", 0)

    def unary(self, name: str, x: Value) -> Value:
        """An intrinsic of one argument, lane by lane: sqrt, fabs, ctpop..."""
        return self.call(x.type, f"llvm.{name}.{self._suffix(x.type)}", x)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        """An intrinsic of two arguments, lane by lane: copysign..."""
        return self.call(x.type, f"llvm.{name}.{self._suffix(x.type)}", x, y)

    def _suffix(self, kind: str) -> str:
        inner = SHORT.get(element(kind), element(kind))
        return f"v{lanes(kind)}{inner}" if lanes(kind) > 1 else inner

    # Control

    def _label(self, text: str) -> None:
        self._lines.append(f"{text}:")

    def _name(self) -> int:
        self._count += 1
        return self._count

    @contextmanager
    def loop(self, begin: Any, end: Any, step: Any = 1) -> Iterator[Value]:
        """The body for i = begin, begin + step, ... below end."""
        k, counter = self._name(), self.variable("i64", begin)
        last, by = self.value("i64", end), self.value("i64", step)
        self.line(f"br label %head{k}")
        self._label(f"head{k}")
        i = counter.get()
        go = i < last
        self.line(f"br i1 {go.text}, label %body{k}, label %done{k}")
        self._label(f"body{k}")
        yield i
        counter.set(i + by)
        self.line(f"br label %head{k}")
        self._label(f"done{k}")

    @contextmanager
    def when(self, condition: Value, *, likely: bool | None = None) -> Iterator[Otherwise]:
        """The body where the condition holds. `with f.when(c) as no: ...; with no.otherwise(): ...` for both."""
        k = self._name()
        weights = "" if likely is None else ", !prof !2" if likely else ", !prof !3"
        other = Otherwise(self, k)
        self.line(f"br i1 {condition.text}, label %then{k}, label %else{k}{weights}")
        self._label(f"then{k}")
        yield other
        if not other.used:
            self.line(f"br label %else{k}")
            self._label(f"else{k}")
            return
        self.line(f"br label %end{k}")
        self._label(f"end{k}")


class Otherwise:
    """The other branch of a `when`, written inside its body and before it ends."""

    def __init__(self, f: Function, k: int) -> None:
        self._f, self._k, self.used = f, k, False

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """From here on the body of the other branch; it must be the last thing in the `when`."""
        self.used = True
        self._f.line(f"br label %end{self._k}")
        self._f._label(f"else{self._k}")
        yield


C_FUNCTIONS = frozenset({"powf", "pow"})
"""Functions of C's library that kernels may call."""

METADATA = """!0 = !{i32 1}
!1 = !{}
!2 = !{!"branch_weights", i32 2000, i32 1}
!3 = !{!"branch_weights", i32 1, i32 2000}"""


def module(*functions: Function) -> str:
    """The text of a module: these functions and what they call of LLVM's own."""
    declarations = sorted(set().union(*(f.declarations for f in functions)))
    return "\n\n".join(["\n".join(declarations), *(str(f) for f in functions), METADATA])
