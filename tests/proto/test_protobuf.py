"""The installed protobuf, whichever it is: `make protobuf` runs this folder under each of its major versions."""

from __future__ import annotations

import google.protobuf
from google.protobuf import descriptor_pool

from astride import proto

TESTED = (4, 5, 6, 7)


def test_its_major_version_is_one_that_was_tested() -> None:
    assert int(google.protobuf.__version__.split(".")[0]) in TESTED


def test_our_messages_are_in_a_pool_of_their_own() -> None:
    made = proto.message("NetParameter")(name="a", layer=[{"name": "b"}])
    assert made.DESCRIPTOR.file.pool is not descriptor_pool.Default()
    assert proto.message("NetParameter").FromString(made.SerializeToString()) == made


def test_fields_that_a_schema_lacks_travel_through() -> None:
    """What forks wrote is in the bytes that are written again, whatever protobuf does with unknown fields."""
    fork = proto.Schema.bvlc().merged("fork", {"LayerParameter": "900 mine string"}, wins=True)
    raw = fork.message("NetParameter")(layer=[{"name": "b", "mine": "kept"}]).SerializeToString()
    assert proto.message("NetParameter").FromString(raw).SerializeToString() == raw
