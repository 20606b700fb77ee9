"""Two tables of one message made into one."""

from __future__ import annotations

from astride.proto.merge import MOVED, merge_lines
from astride.proto.schema import Schema


def lines(text: str) -> set[str]:
    return {" ".join(line.split()) for line in text.splitlines()}


def test_a_lost_number_is_moved_and_the_name_stays() -> None:
    merged = merge_lines("13 ceil_mode bool = true", "13 round_mode RoundMode = CEIL\n14 axis int32")
    assert lines(merged) == {"13 ceil_mode bool = true", f"{MOVED + 13} round_mode RoundMode = CEIL", "14 axis int32"}


def test_a_name_both_have_is_the_winners() -> None:
    assert lines(merge_lines("5 normalize bool = true", "2 normalize bool")) == {"5 normalize bool = true"}


def test_numbers_lost_twice_are_moved_apart() -> None:
    twice = merge_lines(merge_lines("5 a int32", "5 b int32"), "5 c int32")
    assert lines(twice) == {"5 a int32", f"{MOVED + 5} b int32", f"{MOVED + 1_000_005} c int32"}


def test_enumerations_add_up() -> None:
    merged = merge_lines("enum Mode PRE_FIXED=3 NONE=4", "enum Mode FULL=0 NONE=3 # old\nenum Other A=1")
    assert lines(merged) == {"enum Mode PRE_FIXED=3 NONE=4 FULL=0", "enum Other A=1"}
    assert lines(merge_lines("enum Mode A=1", "enum Mode B=1")) == {f"enum Mode A=1 B={MOVED + 1}"}


def test_either_side_of_a_schema_can_win() -> None:
    fork = {"LayerParameter": "137 bn_param BNParameter", "BNParameter": "1 eps float = 1e-5"}
    for wins, number in ((True, 137), (False, MOVED + 137)):
        merged = Schema.bvlc().merged("fork", fork, wins=wins)
        fields = merged.message("LayerParameter").DESCRIPTOR.fields_by_name
        assert fields["bn_param"].number == number
        assert fields["embed_param"].number == MOVED * 2 + 274 - MOVED - number
        assert merged.message("NetParameter").FromString(merged.message("NetParameter")(name="x").SerializeToString()).name == "x"
