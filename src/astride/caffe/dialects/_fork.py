"""What one fork of Caffe has that BVLC's lacks, or has otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fork:
    """`messages` are a fork's own lines, in the notation of proto/schema.py: new ones, and those it has otherwise.

    sources   repositories whose src/caffe/proto/caffe.proto has these names, numbers, types and defaults
    enums     enumerations outside of messages
    refused   "Message.field" -> what it asks for, where that changes numbers and nothing here computes it
    """

    about: str
    sources: tuple[str, ...]
    messages: Mapping[str, str]
    enums: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


BOX_CODE = "enum CodeType CORNER=1 CENTER_SIZE=2 CORNER_SIZE=3\n"
"""PriorBoxParameter's, which two other messages use: each has its own copy here, with the same numbers."""

ENGINE = "enum Engine DEFAULT=0 CAFFE=1 CUDNN=2\n"

INTERP = """
    1 height int32 = 0
    2 width int32 = 0
    3 zoom_factor int32 = 1
    4 shrink_factor int32 = 1
    5 pad_beg int32 = 0
    6 pad_end int32 = 0
"""

ROI_POOLING = """
    1 pooled_h uint32 = 0
    2 pooled_w uint32 = 0
    3 spatial_scale float = 1
"""

PRE_FIXED = """
    enum NormalizationMode FULL=0 VALID=1 BATCH_SIZE=2 PRE_FIXED=3 NONE=4
    3 normalization NormalizationMode = VALID
    4 pre_fixed_normalizer float = 1
"""
"""LossParameter of R-FCN and Intel, whose NONE has another number than BVLC's."""
