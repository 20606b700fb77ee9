"""Which dialect a file is written in: by the names its text uses, or by what its bytes can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...errors import ArgumentError, ModelFileError, PrototxtError
from ...proto import NetFile, Parsed, Schema, Source, open_model, parse, read_caffemodel
from ...proto.wire_survey import Reading, Surprise, survey
from . import ANY, DIALECTS, FORKS, complete, schema

_SHOWN = 20


def read_text(
    source: Source,
    message_name: str = "NetParameter",
    *,
    dialect: str | None = None,
    name: str | None = None,
    allow_unknown_fields: bool = False,
) -> Parsed:
    """A prototxt in the dialect asked for, or in the first one that has all the fields it uses.

    Where no single fork has them all, several are taken together; `Schema.of(parsed.message).name` says which.
    Raises PrototxtError: text that does not parse, and fields that no fork has, all at once; ArgumentError: no such dialect.
    """
    opened = open_model(source, expect="prototxt", name=name)

    def read(schema: Schema, allow: bool = allow_unknown_fields) -> Parsed:
        return parse(opened.view, message_name, source=opened.name, allow_unknown_fields=allow, schema=schema)

    if dialect is not None:
        try:
            strict = read(schema(dialect))
        except PrototxtError as error:
            error.hint = _other_dialect(lambda: read(schema(ANY), True), dialect) or error.hint
            raise
        # Layers of other forks, which need no fields, find the defaults of theirs.
        return strict if strict.unknown else read(complete(dialect))
    parsed = read(schema(ANY))
    chosen = text_dialect(parsed.used)
    if chosen == "bvlc":
        # BVLC's fields keep their numbers in the schema of all, so this message is BVLC's already.
        return parsed
    try:
        return read(complete(chosen))
    except PrototxtError:
        # A fork can have one name with another type: the text was read, in the schema of all.
        return parsed


def text_dialect(used: Iterable[tuple[str, str]]) -> str:
    """The dialect that has all these (message, field) pairs: one name, or several joined with +."""
    needed = {pair for pair in used if not _has(Schema.bvlc(), *pair)}
    chosen: list[str] = []
    while needed:
        best = max(FORKS, key=lambda name: sum(_has(schema(name), *pair) for pair in needed))
        covered = {pair for pair in needed if _has(schema(best), *pair)}
        if not covered:
            # A name that only the schema of all has, as the outcome of merging: that one then is the dialect.
            return ANY
        chosen.append(best)
        needed -= covered
    return "+".join(chosen) or "bvlc"


def _has(dialect: Schema, message: str, field: str) -> bool:
    entry = dialect.messages.get(message)
    name, _, value = field.partition("=")
    known = entry.fields.get(name) if entry is not None else None
    if known is None:
        return False
    return not value or value.isdigit() or value in dialect.enum_values(message, known)


def _other_dialect(read: Callable[[], Parsed], dialect: str) -> str | None:
    """What to suggest where a text has fields that the dialect asked for lacks."""
    try:
        chosen = text_dialect(read().used)
    except PrototxtError:
        return None
    return f'dialect="{chosen}", or none, to have it chosen' if chosen not in (dialect, "bvlc") else None


def read_binary(
    source: Source, *, dialect: str | None = None, name: str | None = None, allow_unknown_fields: bool = False
) -> NetFile:
    """A binary network with the meaning of its layers' fields, not only its weights.

    Forks gave one number to different fields: where the bytes fit one dialect only, that one reads them.
    Raises ModelFileError: fields that no dialect explains, all at once, unless they are allowed; ArgumentError: bytes that
    mean different things in several dialects, with the dialects to choose from.
    """
    opened = open_model(source, expect="caffemodel", name=name)
    file = read_caffemodel(opened.view, name=opened.name, partial=True)
    rest = file.message.SerializePartialToString()
    chosen = dialect or _bytes_dialect(rest, opened.name)
    if chosen is not None and chosen != "bvlc":
        return read_caffemodel(opened.view, name=opened.name, schema=schema(chosen))
    surprises = survey(rest, "NetParameter", Schema.bvlc())
    if surprises and not allow_unknown_fields:
        raise _unexplained(surprises, opened.name, dialect)
    return read_caffemodel(opened.view, name=opened.name)


def _bytes_dialect(rest: bytes, source: str) -> str | None:
    """The dialect of a binary message without its weights; None where there is none."""
    forks = [name for name, fork in FORKS.items() if fork.messages]
    fitting = [name for name in ("bvlc", *forks) if not survey(rest, "NetParameter", schema(name), most=1)]
    if not fitting:
        return None
    readings = {name: Reading.of(rest, schema(name)) for name in fitting}
    # A field that sounds like its layer's type is more likely meant than an Embed's in an Upsample layer.
    most = max(reading.alike for reading in readings.values())
    likely = {name: reading.used for name, reading in readings.items() if reading.alike == most}
    first = next(iter(likely))
    if ("PoolingParameter", "round_mode") in likely[first]:
        choices = [first, "ceil_mode"] if first == "bvlc" else [first, f"{first}+ceil_mode"]
        raise _ambiguous(source, "field 13 of PoolingParameter", choices, _ROUNDING)
    if any(_parameters(used) != _parameters(likely[first]) for used in likely.values()):
        raise _ambiguous(source, "numbers that several forks gave to different fields", list(likely), "forks of Caffe")
    return first


def _parameters(used: set[tuple[str, str]]) -> set[str]:
    """Which parameters layers have. Numbers within them tell too little: Intel's pooling has all of BVLC's, for other fields."""
    return {name for message, name in used if message == "LayerParameter"}


_ROUNDING = "round_mode in BVLC's Caffe (1 is FLOOR), ceil_mode in its forks (1 is true): the opposite"


def _ambiguous(source: str, what: str, choices: list[str], because: str) -> ArgumentError:
    return ArgumentError(
        f"{source} has {what}: its bytes do not say what that means",
        given={"dialect": None},
        required=f"one of {', '.join(choices)}",
        because=because,
        hint=f'dialect="{choices[0]}" (--dialect {choices[0]}), or the prototxt that the file was made from',
    )


def _unexplained(surprises: list[Surprise], source: str, dialect: str | None) -> ModelFileError:
    shown = [str(surprise) for surprise in surprises[:_SHOWN]]
    if len(surprises) > _SHOWN:
        shown.append(f"... and {len(surprises) - _SHOWN} more")
    return ModelFileError(
        f"{source} has {len(surprises)} fields that " + ("BVLC's Caffe lacks" if dialect else "no dialect here explains"),
        given={"fields": shown},
        required=f"a dialect that has them: {', '.join(DIALECTS)}, or several joined with +",
        hint="allow_unknown_fields=True to read the rest without them",
    )
