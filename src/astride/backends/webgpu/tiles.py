"""The tile table of matrix products, and the text of a tile's loads, sums and stores.

A tile is `rows` x `columns` outputs, `across` x `down` invocations of `row_blocks` x `column_blocks` blocks of 4 x 4 outputs
each, `depth` terms at a time. Nothing here was measured on a GPU: the sizes follow from WebGPU's default limits (256
invocations, 16 KiB of workgroup memory) and from what published WGSL products use.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """across * down invocations; 0 for the plain kernel. `depth` is a multiple of 4."""

    across: int
    down: int
    row_blocks: int = 1
    column_blocks: int = 1
    depth: int = 16

    @property
    def threads(self) -> int:
        return self.across * self.down

    @property
    def rows(self) -> int:
        return 4 * self.down * self.row_blocks or 1

    @property
    def columns(self) -> int:
        return 4 * self.across * self.column_blocks or 1

    @property
    def memory(self) -> int:
        """Bytes of workgroup memory."""
        return 4 * self.depth * (self.rows + self.columns) + self.depth * self.rows + 4

    def declarations(self, holes: bool) -> str:
        left = self.depth * self.rows // 4
        return (
            f"const ROWS = {self.rows}; const COLUMNS = {self.columns}; const DEPTH = {self.depth};\n"
            f"const ACROSS = {self.across}; const DOWN = {self.down}; const THREADS = {self.threads};\n"
            f"var<workgroup> lefts: array<vec4<f32>, {left}>;\n"
            f"var<workgroup> rights: array<vec4<f32>, {self.depth * self.columns // 4}>;\n"
            + (f"var<workgroup> skip: atomic<u32>;\nvar<workgroup> solid: array<u32, {left}>;\n" if holes else "")
        )

    def _shares(self, vectors: int) -> list[str]:
        """One condition a vector that each invocation loads: true, or which invocations have one left."""
        whole, rest = divmod(vectors, self.threads)
        return ["true"] * whole + ([f"t < {rest}"] if rest else [])

    def rows_loaded(self, wide: bool) -> str:
        """The rows an invocation loads, found once."""
        if wide:
            return "".join(
                f"  let row{e} = row_of(z, m0 + (t + {e} * THREADS) / (DEPTH / 4));\n"
                for e, _ in enumerate(self._shares(self.depth * self.rows // 4))
            )
        return "".join(f"  let row{i} = row_of(z, m0 + (t % (ROWS / 4)) * 4 + {i});\n" for i in range(4))

    def load_left(self, wide: bool, holes: bool) -> str:
        """Vectors of the left factor with zeros for holes; `solid` says which of the four are none."""
        text = ""
        for e, condition in enumerate(self._shares(self.depth * self.rows // 4)):
            if wide:
                k = "(at % (DEPTH / 4)) * 4"
                lanes = f" if (has(row{e}, term)) {{ v = left4(row{e}, term); mask = 15u; }}"
            else:
                k = "at / (ROWS / 4)"
                lanes = "".join(
                    f"\n        if (has(row{i}, term)) {{ v.{c} = left(row{i}, term); mask |= {1 << i}u; }}"
                    for i, c in enumerate("xyzw")
                )
            text += f"""    if ({condition}) {{
      let at = t + {e} * THREADS;
      let k = k0 + {k};
      var v = vec4<f32>();
      var mask = 0u;
      if (k < end) {{ let term = term_of(z, k);{lanes} }}
      lefts[at] = v;
{"      solid[at] = mask;" if holes else ""}
    }}
"""
        return text

    def load_right(self, holes: bool) -> str:
        text = ""
        for e, condition in enumerate(self._shares(self.depth * self.columns // 4)):
            watch = "if (odd(v.x) || odd(v.y) || odd(v.z) || odd(v.w)) { atomicStore(&skip, 1u); }" if holes else ""
            text += f"""    if ({condition}) {{
      let at = t + {e} * THREADS;
      let k = k0 + at / (COLUMNS / 4);
      let quad = n0 / 4 + at % (COLUMNS / 4);
      var v = vec4<f32>();
      if (k < end && quad < quads) {{ v = w[(z * params.terms + k) * quads + quad]; {watch} }}
      rights[at] = v;
    }}
"""
        return text

    def sums(self) -> str:
        return "".join(f"  var s{i}_{j} = vec4<f32>();\n" for i in range(4 * self.row_blocks) for j in range(self.column_blocks))

    def _left(self, i: int, wide: bool) -> str:
        """The place of the vector that holds row i of an invocation: four terms of it, or four rows of one term."""
        block, lane = divmod(i, 4)
        row = f"({block} * DOWN + ty)"
        return f"({row} * 4 + {lane}) * (DEPTH / 4) + q" if wide else f"kk * (ROWS / 4) + {row}"

    def quick(self, wide: bool) -> str:
        """Every product of the tile, holes being zeros."""
        rows, columns = range(4 * self.row_blocks), range(self.column_blocks)
        if not wide:
            text = "    for (var kk = 0; kk < DEPTH; kk++) {\n"
            text += "".join(f"      let a{b} = lefts[{self._left(4 * b, False)}];\n" for b in range(self.row_blocks))
            text += self._rights("kk")
            text += "".join(f"      s{i}_{j} += a{i // 4}.{'xyzw'[i % 4]} * b{j};\n" for i in rows for j in columns)
            return text + "    }\n"
        text = "    for (var q = 0; q < DEPTH / 4; q++) {\n"
        text += "".join(f"      let a{i} = lefts[{self._left(i, True)}];\n" for i in rows)
        for k, lane in enumerate("xyzw"):
            text += f"      {{\n{self._rights(f'(q * 4 + {k})')}"
            text += "".join(f"      s{i}_{j} += a{i}.{lane} * b{j};\n" for i in rows for j in columns) + "      }\n"
        return text + "    }\n"

    def careful(self, wide: bool) -> str:
        """The same, holes skipped."""
        text = "      for (var kk = 0; kk < DEPTH; kk++) {\n        let q = kk / 4;\n" + self._rights("kk")
        for i in range(4 * self.row_blocks):
            bit, lane = ("1u", "[kk % 4]") if wide else (f"{1 << i % 4}u", f".{'xyzw'[i % 4]}")
            at = self._left(i, wide)
            sums = "".join(f" s{i}_{j} += v * b{j};" for j in range(self.column_blocks))
            text += f"        if ((solid[{at}] & {bit}) != 0u) {{ let v = lefts[{at}]{lane};{sums} }}\n"
        return text + "      }\n"

    def _rights(self, k: str) -> str:
        return "".join(f"      let b{j} = rights[{k} * (COLUMNS / 4) + {j} * ACROSS + tx];\n" for j in range(self.column_blocks))

    def store(self) -> str:
        """The sums to their places, in a loop: where that is takes more text than all the rest."""
        rows, columns = 4 * self.row_blocks, self.column_blocks
        sums = ", ".join(f"s{i}_{j}" for i in range(rows) for j in range(columns))
        return f"""  var sums = array<vec4<f32>, {rows * columns}>({sums});
  for (var s = 0; s < {16 * self.row_blocks * columns}; s++) {{
    let i = s / {4 * columns};
    let j = (s / 4) % {columns};
    put(z, m0 + ((i / 4) * DOWN + ty) * 4 + i % 4, n0 + (j * ACROSS + tx) * 4 + s % 4, chunk, sums[s / 4][s % 4]);
  }}
"""


PLAIN_TILE = Tile(0, 0, depth=4)
SMALL = Tile(8, 8, depth=8)
MIDDLE = Tile(16, 16, depth=16)
LARGE = Tile(16, 16, row_blocks=2, column_blocks=2, depth=8)
NARROW = Tile(4, 32, row_blocks=2, depth=8)

TABLE: dict[str, tuple[Tile, ...]] = {
    "CPU": (SMALL,),
    "IntegratedGPU": (MIDDLE, NARROW, SMALL),
    "DiscreteGPU": (LARGE, MIDDLE, NARROW, SMALL),
}
"""Adapter type -> tiles to choose from, largest first. A software adapter runs invocations one by one."""

ANY = (MIDDLE, NARROW, SMALL)


def choose(adapter: str, rows: int, columns: int, terms: int) -> Tile:
    """The first tile of the adapter's that the product fills at least three quarters of; the plain kernel for odd shapes."""
    if columns < 4 or rows < 8 or terms < 4:
        return PLAIN_TILE
    for tile in TABLE.get(adapter, ANY):
        if _filled(rows, tile.rows) * _filled(columns, tile.columns) >= 0.75:
            return tile
    return min(TABLE.get(adapter, ANY), key=lambda tile: -_filled(rows, tile.rows) * _filled(columns, tile.columns))


def _filled(size: int, tile: int) -> float:
    return size / (-(-size // tile) * tile)


__all__ = ["PLAIN_TILE", "TABLE", "Tile", "choose"]
