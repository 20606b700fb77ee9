"""A network's text, written layer by layer: the few lines that the definitions in this folder share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Word(str):
    """An enum's value, which the text format writes without quotes."""


MAX, AVE, FLOOR = Word("MAX"), Word("AVE"), Word("FLOOR")


class Text:
    """Layers in their order. Without `bottom` a layer takes the last top; what `add` returns is the name of its top."""

    def __init__(self, name: str, **inputs: tuple[int, ...]) -> None:
        self._blocks = [f'name: "{name}"']
        self.last = ""
        for blob, shape in inputs.items():
            self.add("Input", blob, (), input_param={"shape": {"dim": list(shape)}})
        self.last = next(iter(inputs))

    def add(
        self,
        kind: str,
        name: str,
        bottom: str | Iterable[str] | None = None,
        *,
        top: str | Iterable[str] | None = None,
        **fields: Any,
    ) -> str:
        """A layer. `fields` are those of its message; a field that is repeated takes a list."""
        bottoms = [self.last] if bottom is None else [bottom] if isinstance(bottom, str) else list(bottom)
        tops = [name] if top is None else [top] if isinstance(top, str) else list(top)
        self._blocks.append("layer " + _message({"name": name, "type": kind, "bottom": bottoms, "top": tops, **fields}, 0))
        self.last = tops[0] if tops else self.last
        return self.last

    def inplace(self, kind: str, name: str, **fields: Any) -> str:
        """A layer that overwrites the last top."""
        return self.add(kind, name, top=self.last, **fields)

    def conv(self, name: str, outputs: int, kernel: int, bottom: str | None = None, **fields: Any) -> str:
        """A convolution; `pad`, `stride`, `group`, `dilation`, `bias_term` as the field they are."""
        layer = {key: fields.pop(key) for key in ("param", "propagate_down") if key in fields}
        return self.add(
            "Convolution", name, bottom, **layer, convolution_param={"num_output": outputs, "kernel_size": kernel, **fields}
        )

    def conv_relu(self, name: str, outputs: int, kernel: int, bottom: str | None = None, **fields: Any) -> str:
        """A convolution and a ReLU in place; the ReLU is named as the networks of Caffe's zoo name theirs."""
        self.conv(name, outputs, kernel, bottom, **fields)
        return self.inplace("ReLU", relu_of(name))

    def pool(self, name: str, kernel: int, stride: int, bottom: str | None = None, *, pool: Word = MAX, **fields: Any) -> str:
        """A pooling layer; `pad` if it has one, `top` for a mask beside it."""
        top = fields.pop("top", None)
        sizes = {"pool": pool, "kernel_size": kernel, "stride": stride, **fields}
        return self.add("Pooling", name, bottom, top=top, pooling_param=sizes)

    def global_average(self, name: str) -> str:
        """The mean of every plane."""
        return self.add("Pooling", name, pooling_param={"pool": AVE, "global_pooling": True})

    def dense(self, name: str, outputs: int, bottom: str | None = None) -> str:
        """A fully connected layer."""
        return self.add("InnerProduct", name, bottom, inner_product_param={"num_output": outputs})

    def dense_relu(self, name: str, outputs: int, *, dropout: float | None = None) -> str:
        """A fully connected layer, a ReLU in place, and dropout if asked for."""
        self.dense(name, outputs)
        self.inplace("ReLU", relu_of(name))
        if dropout is not None:
            self.inplace("Dropout", name.replace("fc", "drop"), dropout_param={"dropout_ratio": dropout})
        return self.last

    def normalised(self, name: str, *, bottom: str | None = None, top: str | None = None) -> str:
        """Batch normalisation and its scale and shift: two layers in Caffe. In place if `top` is not given."""
        source = bottom or self.last
        self.add("BatchNorm", f"{name}/bn", source, top=top or source)
        return self.inplace("Scale", f"{name}/scale", scale_param={"bias_term": True})

    def __str__(self) -> str:
        return "\n".join(self._blocks) + "\n"


def relu_of(name: str) -> str:
    """conv1_2 -> relu1_2, and for a name without "conv" or "fc" in front, the name and /relu."""
    for prefix in ("conv", "fc"):
        if name.startswith(prefix) and "/" not in name:
            return "relu" + name.removeprefix(prefix)
    return f"{name}/relu"


def _message(fields: Mapping[str, Any], depth: int) -> str:
    """A message between braces: in one line if it has no messages in it and is short, else a line a field."""
    parts: list[str] = []
    for key, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            parts.append(f"{key} {_message(item, depth + 1)}" if isinstance(item, Mapping) else f"{key}: {_literal(item)}")
    flat = "{ " + " ".join(parts) + " }"
    if depth and len(flat) + 2 * depth <= 100 and "\n" not in flat:
        return flat
    inner = "  " * (depth + 1)
    return "{\n" + "".join(f"{inner}{part}\n" for part in parts) + "  " * depth + "}"


def _literal(value: Any) -> str:
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)
