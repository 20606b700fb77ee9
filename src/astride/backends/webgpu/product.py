"""One matrix product behind convolution, its gradients and the dense layers: what differs is how an index finds its number.

    out[place(z, m, n)] = finish(sum over k of left(row_of(z, m), term_of(z, k)) * right(z, n, k) + bias[channel(z, n)])

`Factors` brings these functions as text. `left` may have holes, places that take no part (padding, the gaps between a transposed
convolution's pixels); `has` says where there is none. z counts independent products (groups, phases), and a long sum is split
into chunks whose shares `gathered` adds up, always in the same order.

Two kernels read the same text: a plain one, an invocation an output, and a tiled one. In the tiled one a workgroup takes tiles
of both factors into workgroup memory, as vectors of four along rows and columns (or along the sum, where the source lies so),
and each invocation holds blocks of 4 x 4 outputs in registers. A hole is a zero in the tile; only where the other factor is
not finite are holes skipped one by one, since zero times infinity is not nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .recipe import MOST_TERMS, NON_FINITE, WORKERS, Recipe, Step, Values, each, kinds, program
from .tiles import PLAIN_TILE, Tile, choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """The index functions of a product, as WGSL, and what they read.

    geometry  struct Row, struct Term, row_of, term_of, has, place, channel; place is -1 where a row is none
    left      fn left, of x; `left4`, fn left4, reads x as vec4: four terms from a multiple of four on, which are neighbours
    right     fn right, of w; `packing` is what it calls
    sizes     products (of z), rows, columns, terms, total (elements of out), and whatever the text reads besides; with a
              bias inner and channels: the channel of element i of out is (i / inner) % channels
    holes     whether `has` is ever false
    columns_first  whether neighbours in memory are columns of out, rather than rows
    """

    name: str
    geometry: str
    left: str
    right: str
    sizes: Mapping[str, int]
    holes: bool
    left4: str = ""
    packing: str = ""
    wide: bool = False
    columns_first: bool = False


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of a sum: a bias is added, then `finish`, the WGSL of `fn finish(v: f32) -> f32`, with its parameters."""

    bias: bool = False
    finish: str = "fn finish(v: f32) -> f32 { return v; }\n"
    numbers: tuple[tuple[str, float], ...] = ()


PLAIN = Epilogue()


def product(
    factors: Factors,
    x: str,
    w: str,
    out: str,
    *,
    bias: str = "b",
    epilogue: Epilogue = PLAIN,
    adapter: str = "",
    tile: Tile | None = None,
) -> Recipe:
    """The recipe of a product: of packing w where it is tiled, of the product, and of adding up its chunks.

    `tile` overrides the choice by shapes and adapter.
    """
    s = factors.sizes
    if not s["total"] or not s["products"]:
        return Recipe()
    tile = choose(adapter, s["rows"], s["columns"], s["terms"]) if tile is None else tile
    length, chunks = split(s, tile)
    target = "shares" if chunks > 1 else out
    numbers = {**s, "length": length, "chunks": chunks}
    last = epilogue if chunks == 1 else PLAIN
    names = {"x": x, "w": w, "out": target, "bias": bias}
    if tile.threads:
        recipe = _packed(factors, w)
        recipe = recipe.then(Recipe((_tiled(factors, numbers, {**names, "w": "packed"}, last, tile),)))
    else:
        recipe = Recipe((_plain(factors, numbers, names, last),))
    if chunks > 1:
        recipe = recipe.then(
            Recipe((_gathered(factors, chunks, {**names, "out": out}, epilogue),), {"shares": chunks * s["total"]})
        )
    return recipe


ENOUGH_GROUPS = 256
"""Groups that keep a GPU busy; a product of fewer is split along its sum, down to this many terms a chunk."""
LEAST_TERMS = 512


def split(s: Mapping[str, int], tile: Tile) -> tuple[int, int]:
    """(terms a chunk, chunks): as few as keep loops short and the GPU busy, and no more shares than a buffer holds."""
    terms = max(s["terms"], 1)
    tiles = s["products"] * -(-s["rows"] // tile.rows) * -(-s["columns"] // tile.columns)
    groups = tiles if tile.threads else -(-tiles // WORKERS)
    wanted = max(-(-terms // MOST_TERMS), min(ENOUGH_GROUPS // max(groups, 1), terms // LEAST_TERMS))
    most = max(1, MOST_SHARES // max(s["total"], 1))
    chunks = max(-(-terms // MOST_TERMS), min(wanted, most), 1)
    length = -(-terms // chunks)
    length += -length % max(tile.depth, 4)
    return length, -(-terms // length)


MOST_SHARES = 1 << 23
"""Elements of the chunks' shares, unless loops would be too long."""


def _text(factors: Factors, epilogue: Epilogue) -> str:
    """Where things are, and fn put(z, m, n, chunk, v): one output to its place."""
    value = "v + bias[channel(z, n)]" if epilogue.bias else "v"
    return (
        factors.geometry
        + epilogue.finish
        + "fn put(z: i32, m: i32, n: i32, chunk: i32, v: f32) {\n"
        + "  if (m >= params.rows || n >= params.columns) { return; }\n"
        + "  let at = place(z, m, n);\n"
        + f"  if (at >= 0) {{ out[chunk * params.total + at] = finish({value}); }}\n"
        + "}\n"
    )


def _step(
    name: str, names: Mapping[str, str], numbers: Values, epilogue: Epilogue, functions: str, body: str, tile: Tile, wide: bool
) -> Step:
    """A dispatch of a product: what it binds is x, w, perhaps a bias, and out."""
    vectors = tile.threads > 0
    inputs = [("x", "vec4<f32>" if wide and vectors else "f32"), ("w", "vec4<f32>" if vectors else "f32")]
    inputs += [("bias", "f32")] if epilogue.bias else []
    made = program(name, tuple(inputs), (("out", "f32"),), kinds(numbers), functions, body, tile.threads or WORKERS)
    count = int(numbers["count"])
    groups = count if vectors else -(-count // WORKERS)
    flops = 2 * int(numbers["products"]) * int(numbers["rows"]) * int(numbers["columns"]) * int(numbers["terms"])
    return Step(made, tuple(names[n] for n, _ in inputs), (names["out"],), numbers, groups, flops)


def _plain(factors: Factors, numbers: Mapping[str, int], names: Mapping[str, str], epilogue: Epilogue) -> Step:
    """An invocation an output, the terms in order."""
    count = numbers["products"] * numbers["rows"] * numbers["columns"] * numbers["chunks"]
    order = ["columns", "products", "rows"] if factors.columns_first else ["rows", "columns", "products"]
    letters = {"columns": "n", "products": "z", "rows": "m"}
    places = "".join(f"  let {letters[o]} = t % params.{o};\n  t /= params.{o};\n" for o in order)
    body = f"""  let i = group * {WORKERS} + lane;
  if (i >= params.count) {{ return; }}
  var t = i;
{places}  let row = row_of(z, m);
  let end = min((t + 1) * params.length, params.terms);
  var sum = 0.0;
  for (var k = t * params.length; k < end; k++) {{
    let term = term_of(z, k);
    if (has(row, term)) {{ sum += left(row, term) * right(z, n, k); }}
  }}
  put(z, m, n, t, sum);
"""
    values = {**numbers, "count": count, **dict(epilogue.numbers)}
    functions = _text(factors, epilogue) + factors.left + factors.right
    return _step(factors.name, names, values, epilogue, functions, body, PLAIN_TILE, False)


def _packed(factors: Factors, w: str) -> Recipe:
    """w as (products, terms, columns), columns filled up with zeros to a multiple of four."""
    s = factors.sizes
    wide = -(-s["columns"] // 4) * 4
    count = s["products"] * s["terms"] * wide
    body = """  let n = i % params.wide;
  let t = i / params.wide;
  var v = 0.0;
  if (n < params.columns) { v = right(t / params.terms, n, t % params.terms); }
  packed[i] = v;
"""
    numbers = {**s, "wide": wide, "count": count}
    step = each("pack", ["w"], ["packed"], numbers, body, functions=factors.packing + factors.right, names={"w": w})
    return Recipe((step,), {"packed": count})


def _gathered(factors: Factors, chunks: int, names: Mapping[str, str], epilogue: Epilogue) -> Step:
    """out from the chunks' shares, added in order."""
    s = factors.sizes
    numbers: dict[str, int | float] = {"count": s["total"], "chunks": chunks, **dict(epilogue.numbers)}
    if epilogue.bias:
        numbers |= {"inner": s["inner"], "channels": s["channels"]}
    value = "sum + bias[(i / params.inner) % params.channels]" if epilogue.bias else "sum"
    body = f"""  var sum = 0.0;
  for (var c = 0; c < params.chunks; c++) {{ sum += shares[c * params.count + i]; }}
  out[i] = finish({value});
"""
    inputs = ["shares", *["bias"] * epilogue.bias]
    return each("gather chunks", inputs, ["out"], numbers, body, functions=epilogue.finish, names={**names, "shares": "shares"})


def _tiled(factors: Factors, numbers: Mapping[str, int], names: Mapping[str, str], epilogue: Epilogue, tile: Tile) -> Step:
    """A workgroup a tile of outputs."""
    rows, columns = -(-numbers["rows"] // tile.rows), -(-numbers["columns"] // tile.columns)
    count = rows * columns * numbers["products"] * numbers["chunks"]
    values = {**numbers, "row_tiles": rows, "column_tiles": columns, "count": count, **dict(epilogue.numbers)}
    wide, holes = factors.wide, factors.holes
    functions = _text(factors, epilogue) + (factors.left4 if wide else factors.left) + NON_FINITE
    body = TILED_HEAD + tile.rows_loaded(wide) + tile.sums()
    body += "  for (var k0 = begin; k0 < end; k0 += DEPTH) {\n"
    body += tile.load_left(wide, holes) + tile.load_right(holes) + "    workgroupBarrier();\n"
    if holes:
        body += "    if (atomicLoad(&skip) != 0u) {\n" + tile.careful(wide) + "    } else {\n" + tile.quick(wide) + "    }\n"
        body += "    workgroupBarrier();\n    if (lane == 0) { atomicStore(&skip, 0u); }\n    workgroupBarrier();\n"
    else:
        body += tile.quick(wide) + "    workgroupBarrier();\n"
    body += "  }\n" + tile.store()
    return _step(factors.name, names, values, epilogue, functions + tile.declarations(holes), body, tile, wide)


TILED_HEAD = """  if (group >= params.count) { return; }
  var g = group;
  let n0 = (g % params.column_tiles) * COLUMNS;
  g /= params.column_tiles;
  let m0 = (g % params.row_tiles) * ROWS;
  g /= params.row_tiles;
  let z = g % params.products;
  let chunk = g / params.products;
  let begin = chunk * params.length;
  let end = min(begin + params.length, params.terms);
  let t = lane;
  let quads = (params.columns + 3) / 4;
  let tx = t % ACROSS;
  let ty = t / ACROSS;
"""

__all__ = ["PLAIN", "Epilogue", "Factors", "product", "split"]
