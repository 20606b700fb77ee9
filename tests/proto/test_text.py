from __future__ import annotations

import math
import time

import numpy as np
import pytest

from astride import proto
from astride.errors import ArgumentError, PrototxtError
from astride.proto.limits import MAX_TEXT_BYTES
from astride.proto.text_format import number

from .samples import NET

CONV = "layer {{ convolution_param {{ {} }} }}"


def conv(text: str) -> object:
    return proto.parse(CONV.format(text), "NetParameter").message.layer[0].convolution_param


def filler(text: str) -> object:
    return proto.parse(text, "FillerParameter").message


def failure(text: str | bytes, name: str = "NetParameter", **options: bool) -> PrototxtError:
    with pytest.raises(PrototxtError) as caught:
        proto.parse(text, name, source="net.prototxt", **options)
    return caught.value


def test_every_way_to_write_a_message() -> None:
    ways = ["{ name: 'a' }", ": { name: 'a' }", "< name: 'a' >", ": < name: 'a'; >", "[{ name: 'a' }]", ": [ { name: 'a', } ]"]
    for way in ways:
        message = proto.parse(f"layer {way}", "NetParameter").message
        assert [layer.name for layer in message.layer] == ["a"], way
    two = proto.parse("layer [{ name: 'a' }, < name: 'b' >] layer { name: 'c' };", "NetParameter").message
    assert [layer.name for layer in two.layer] == ["a", "b", "c"]
    assert not proto.parse("layer []", "NetParameter").message.layer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pad: 1 pad: 2", [1, 2]),
        ("pad: [1, 2]", [1, 2]),
        ("pad: [1] pad: [2, 3]", [1, 2, 3]),
        ("pad: []", []),
        ("pad: 0x1F, pad: 017; pad: 0", [31, 15, 0]),
        ("pad:1#comment\n# another: 9\r\npad :\t2", [1, 2]),
    ],
)
def test_whole_numbers(text: str, expected: list[int]) -> None:
    assert list(conv(text).pad) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1.f", 1.0),
        ("2F", 2.0),
        ("1e3", 1000.0),
        ("-1.5E-2f", -0.015),
        ("- 3", -3.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1e60", math.inf),
        ("0", 0.0),
    ],
)
def test_real_numbers(text: str, expected: float) -> None:
    assert filler(f"value: {text}").value == pytest.approx(expected, rel=1e-6)  # type: ignore[attr-defined]


def test_nan() -> None:
    assert math.isnan(filler("value: nan").value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", ["true", "t", "True", "1", "0x1"])
@pytest.mark.parametrize("other", ["false", "f", "False", "0"])
def test_bools(word: str, other: str) -> None:
    assert conv(f"bias_term: {word}").bias_term is True  # type: ignore[attr-defined]
    assert conv(f"bias_term: {other}").bias_term is False  # type: ignore[attr-defined]


def test_enums_by_name_and_number() -> None:
    for text in ("AVE", "1"):
        message = proto.parse(f"pool: {text}", "PoolingParameter").message
        assert message.pool == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'single' \"double\"\n  'third'", "singledoublethird"),
        (r'"tab\t new\n quote\" back\\ it\'s"', "tab\t new\n quote\" back\\ it's"),
        (r'"\101\x42\u00e9\U0001F600"', "ABé😀"),
        ('"\\303\\251"', "é"),
        ('"\\a\\b\\f\\v\\r\\?"', "\a\b\f\v\r?"),
        ('"# no comment"', "# no comment"),
        ('"日本語"', "日本語"),
    ],
)
def test_strings(text: str, expected: str) -> None:
    assert proto.parse(f"name: {text}", "NetParameter").message.name == expected


def test_bytes_take_any_byte() -> None:
    assert proto.parse(r'data: "\377\x00a"', "Datum").message.data == b"\xff\x00a"


def test_comments_in_any_encoding_and_a_byte_order_mark() -> None:
    text = b"\xef\xbb\xbf# \xd6\xd0\xce\xc4 in GBK\nname: 'a'\n"
    assert proto.parse(text, "NetParameter").message.name == "a"


def test_places_of_layers_and_fields() -> None:
    parsed = proto.parse(NET, "NetParameter", source="net.prototxt")
    lines = NET.splitlines()
    for layer in parsed.message.layer:
        line = parsed.line_of(layer)
        assert line is not None
        assert lines[line - 1] == "layer {"
        assert lines[line] == f'  name: "{layer.name}"'
    pool = parsed.message.layer[2]
    assert parsed.line_of(pool.pooling_param) == parsed.line_of(pool, "pooling_param") == 23
    assert parsed.where("layer[2].pooling_param.stride") == (23, 44)
    assert parsed.where("layer[1].param[1].decay_mult") == (15, 22)
    assert parsed.where("layer[0].input_param.shape.dim[2]") == (7, 37)
    assert parsed.where("name") == (2, 1)


def test_places_of_old_layers_and_lists() -> None:
    parsed = proto.parse("layers { layer { name: 'a' } }\nlayers: [\n {},\n {}]", "NetParameter")
    assert [parsed.line_of(layer) for layer in parsed.message.layers] == [1, 3, 4]


def test_places_of_what_is_not_there() -> None:
    parsed = proto.parse(NET, "NetParameter", source="net.prototxt")
    assert parsed.line_of(parsed.message.layer[0], "phase") is None
    assert parsed.line_of(proto.message("LayerParameter")()) is None
    with pytest.raises(ArgumentError, match=r"net\.prototxt does not set layer\[0\]\.bottom"):
        parsed.where("layer[0].bottom")


def test_errors_of_later_stages_show_the_place() -> None:
    parsed = proto.parse(NET, "NetParameter", source="net.prototxt")
    pool = parsed.message.layer[2]
    error = parsed.error("pad is not smaller than the kernel", pool.pooling_param, "stride", hint="stride: 1")
    assert (error.line, error.column) == (23, 44)
    assert str(error).splitlines() == [
        "net.prototxt:23:44: pad is not smaller than the kernel",
        "      pooling_param { pool: AVE kernel_size: 3 stride: 2 }",
        "    " + " " * 43 + "^",
        "  try       stride: 1",
    ]
    assert parsed.error("no phase", pool, "phase").line == parsed.line_of(pool)
    assert parsed.error("nothing to do with the text").line is None


def test_unknown_fields_all_at_once() -> None:
    pooling = "  pooling_param { kernel_sise: 3 ceil_mode: true }"
    text = f"layer {{\n  name: 'a'\n  botom: 'data'\n{pooling}\n  permute_param {{ order: [0, 1] x < y: -1 > }}\n}}\n"
    error = failure(text)
    assert (error.line, error.column) == (3, 3)
    assert error.problem.splitlines() == [
        "net.prototxt: 4 fields or values are wrong",
        "  3:3      LayerParameter has no field botom; nearest: bottom",
        "  4:19     PoolingParameter has no field kernel_sise; nearest: kernel_size",
        "  4:34     PoolingParameter has no field ceil_mode",
        "  5:3      LayerParameter has no field permute_param; nearest: parameter_param",
        "      botom: 'data'",
        "      ^",
    ]
    assert error.hint == "allow_unknown_fields=True to read the rest without unknown fields"
    parsed = proto.parse(text, "NetParameter", allow_unknown_fields=True)
    assert parsed.message.layer[0].name == "a"
    assert [(u.line, u.column, u.owner, u.name) for u in parsed.unknown] == [
        (3, 3, "LayerParameter", "botom"),
        (4, 19, "PoolingParameter", "kernel_sise"),
        (4, 34, "PoolingParameter", "ceil_mode"),
        (5, 3, "LayerParameter", "permute_param"),
    ]


def test_allowed_unknown_fields_do_not_allow_anything_else() -> None:
    error = failure("layer { new: 1 pooling_param { pool: MEDIAN } }", allow_unknown_fields=True)
    assert "MEDIAN is no value of pool (PoolMethod: MAX, AVE, STOCHASTIC)" in error.problem
    assert error.hint is None


EXAMPLES = [
    ("layer {\n  name: 'a'\n", 1, 7, "this { is never closed"),
    ("layer {\n  name: 'a' >\n}", 2, 13, "expected the name of a field, found >"),
    ("name: 'a' }", 1, 11, "expected the name of a field, found }"),
    ("name 'a'", 1, 6, "expected a colon after name, found 'a'"),
    ('name: "a\nlayer {}', 1, 7, "this string has no closing quote on its line"),
    ("name: a", 1, 7, "name takes a string, not a"),
    ("name: ", 1, 7, "expected a value for name (string), found the end of the text"),
    ("name = 'a'", 1, 6, "unexpected '='"),
    ("// comment\nname: 'a'", 1, 1, "comments start with #"),
    ("name: 'a\\q'", 1, 7, "unknown escape \\q in a string"),
    ("name: '\\377'", 1, 7, "the string of name is not UTF-8 at its byte 0"),
    ("[caffe.ext]: 1", 1, 1, "expected the name of a field, found ["),
    ("name: 'a'\nname: 'b'", 2, 1, "name is set a second time; it is not a repeated field (first on line 1)"),
    ("state {}\nstate {}", 2, 1, "state is set a second time; it is not a repeated field (first on line 1)"),
    ("layer: 3", 1, 8, "expected { to open layer (LayerParameter), found 3"),
    ("name: ['a']", 1, 7, "expected one value: name is not repeated, found ["),
    ("input_dim: [1 2]", 1, 15, "expected a comma or ], found 2"),
    ("input_dim: [1,]", 1, 15, "expected a value for input_dim (int32), found ]"),
    ("input_dim: 3.0", 1, 12, "input_dim takes a whole number (int32), not 3.0"),
    ("input_dim: 3abc", 1, 12, "3abc is no number"),
    ("input_dim: 2147483648", 1, 12, "2147483648 is out of the range of input_dim (int32: -2147483648 to 2147483647)"),
    ("input_dim: '3'", 1, 12, "input_dim takes a value of type int32, not a string"),
    ("input_dim: 09", 1, 12, "input_dim takes a whole number (int32), not 09"),
    ("force_backward: yes", 1, 17, "force_backward takes true or false, not yes"),
    ("force_backward: 2", 1, 17, "force_backward takes true or false, not 2"),
    ("state { phase: TSET }", 1, 16, "TSET is no value of phase (Phase: TRAIN, TEST)"),
    ("state { phase: 2 }", 1, 16, "2 is no value of phase (Phase: TRAIN, TEST)"),
    ("layers { type: POOL }", 1, 16, "POOL is no value of type"),
    ("layer { loss_weight: 010 }", 1, 22, "loss_weight takes a decimal number (float), not 010"),
    ("layer { loss_weight: x }", 1, 22, "loss_weight takes a number (float), not x"),
    ("layer { pooling_param { pad: -1 } }", 1, 30, "-1 is out of the range of pad (uint32: 0 to 4294967295)"),
    ("layer {\n  clip_param { min: 1 }\n}", 2, 3, "layer[0].clip_param lacks its required field max"),
    ("name: 'a' \x01", 1, 11, "unexpected character"),
    ("+", 1, 1, "unexpected '+'"),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), EXAMPLES, ids=[example[0][:24] for example in EXAMPLES])
def test_error_by_example(text: str, line: int, column: int, problem: str) -> None:
    error = failure(text)
    assert (error.line, error.column) == (line, column)
    head, shown, caret = error.problem.splitlines()
    assert head.startswith(f"net.prototxt:{line}:{column}: {problem}")
    assert caret.index("^") - 4 == column - 1
    assert len(shown) >= 4


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("state { phase: TSET }", "TEST"),
        ("layers { type: POOL }", "POOLING"),
        ("state { phase: 7 }", None),
        ("layers { type: Pooling }", "POOLING"),
        ("input_dim: 3.0", "3"),
        ("force_backward: TRUE", "true"),
        ("name: a", 'name: "a"'),
        ("layer { botom: 'x' }", "bottom, or allow_unknown_fields=True to read the rest without unknown fields"),
        ("// x", "write # instead of //"),
    ],
)
def test_hints(text: str, hint: str | None) -> None:
    assert failure(text).hint == hint


def test_caret_in_a_long_line_and_after_tabs() -> None:
    error = failure("\t\tname: x")
    assert error.problem.splitlines()[1:] == ["    \t\tname: x", "    \t\t      ^"]
    error = failure("name: '" + "x" * 5000 + "' bad: 1")
    _, shown, caret = error.problem.splitlines()
    assert len(shown) <= 100
    assert shown[caret.index("^") :].startswith("bad: 1")


def test_not_utf8_in_a_string() -> None:
    error = failure(b"layer {\n  name: '\xd6\xd0'\n}")
    assert (error.line, error.column) == (2, 9)
    assert "not UTF-8" in error.problem


def test_depth_is_limited_for_known_and_unknown_fields() -> None:
    deep = "x { " * 2000 + "}" * 2000
    assert "nested deeper than 64" in failure(deep).problem
    assert "nested deeper than 64" in failure(deep, allow_unknown_fields=True).problem
    assert "nested deeper than 64" in failure("x: " + "[" * 2000, allow_unknown_fields=True).problem


def test_length_is_limited() -> None:
    error = failure(b"#" * (MAX_TEXT_BYTES + 1))
    assert error.required == f"at most {MAX_TEXT_BYTES} bytes: {MAX_TEXT_BYTES + 1}"


def test_number_of_layers_is_limited() -> None:
    assert "no real network has so many" in failure("layer{}" * 40_000).problem


def test_many_faults_are_cut_short() -> None:
    error = failure("bad: 1\n" * 1000)
    assert "1000 fields or values are wrong" in error.problem
    assert error.problem.splitlines()[-3] == "  ... and 960 more"


def test_the_written_form() -> None:
    message = proto.parse(NET, "NetParameter").message
    text = proto.format(message)
    assert text.splitlines()[:8] == [
        'name: "small"',
        "layer {",
        '  name: "data"',
        '  type: "Input"',
        '  top: "data"',
        "  input_param {",
        "    shape {",
        "      dim: 1",
    ]
    assert "    pool: AVE\n" in text
    assert proto.parse(text, "NetParameter").message == message
    assert proto.format(proto.message("NetParameter")()) == ""


def test_written_strings_read_back() -> None:
    message = proto.message("NetParameter")(name="a\"b'c\\d\n\t\x01\x7fé日😀")
    text = proto.format(message)
    assert text == 'name: "a\\"b\\\'c\\\\d\\n\\t\\001\\177é日😀"\n'
    assert proto.parse(text, "NetParameter").message == message
    datum = proto.message("Datum")(data=bytes(range(256)))
    assert proto.parse(proto.format(datum), "Datum").message == datum


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1.0, "1"), (-0.0, "-0"), (1e-5, "1e-05"), (0.99, "0.99"), (16777216.0, "16777216"), (1e20, "1e+20")],
)
def test_numbers_are_as_short_as_they_read_back(value: float, text: str) -> None:
    assert number(float(np.float32(value)), single=True) == text


def test_every_float_reads_back(rng: np.random.Generator) -> None:
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    values = bits.view("f4")
    for value in values[np.isfinite(values)]:
        assert np.float32(number(float(value), single=True)) == value
    for value in rng.integers(0, 2**63, 2000, dtype=np.uint64).view("f8"):
        assert not np.isfinite(value) or float(number(float(value), single=False)) == value


def test_a_string_of_megabytes_is_read_in_a_blink() -> None:
    begun = time.process_time()
    assert proto.parse('name: "' + "a" * 4_000_000 + '"', "NetParameter").message.name.count("a") == 4_000_000
    assert time.process_time() - begun < 1.5
