"""Sums and matrix products over strided arrays, as products of two factors: what dense layers and gradients of biases need."""

from __future__ import annotations

from collections.abc import Mapping

from .product import PLAIN, Epilogue, Factors, product
from .recipe import Recipe
from .tiles import PLAIN_TILE, Tile


def totals(
    x: str,
    out: str,
    *,
    lead: int,
    kept: int,
    inner: int,
    strides: tuple[int, int, int],
    other: str = "",
    value: str = "x[at]",
    scale: float = 1.0,
) -> Recipe:
    """out (kept,) = scale * sum over `lead` and `inner` of `value`, whose `at` is lead, kept, inner times the strides.

    `value` is WGSL that may read x and w, another array of x's size, named `other` in the recipe.
    """
    geometry = """
struct Row { base: i32 }
struct Term { offset: i32 }
fn row_of(z: i32, m: i32) -> Row { return Row(m * params.kept_stride); }
fn term_of(z: i32, k: i32) -> Term {
  return Term((k / params.inner_size) * params.lead_stride + (k % params.inner_size) * params.inner_stride);
}
fn has(r: Row, t: Term) -> bool { return true; }
fn place(z: i32, m: i32, n: i32) -> i32 { return m; }
fn channel(z: i32, n: i32) -> i32 { return 0; }
"""
    left = f"fn left(r: Row, t: Term) -> f32 {{ let at = r.base + t.offset; return {value}; }}\n"
    numbers = {"lead_stride": strides[0], "kept_stride": strides[1], "inner_stride": strides[2], "inner_size": max(inner, 1)}
    sizes = {"products": 1, "rows": kept, "columns": 1, "terms": lead * inner, "total": kept, **numbers}
    factors = Factors(
        name="total",
        geometry=geometry,
        left=left,
        right="fn right(z: i32, n: i32, k: i32) -> f32 { return 1.0; }\n",
        sizes=sizes,
        holes=False,
    )
    last = PLAIN if scale == 1.0 else Epilogue(False, "fn finish(v: f32) -> f32 { return v * params.by; }\n", (("by", scale),))
    return product(factors, x, other or x, out, epilogue=last, tile=PLAIN_TILE)


def matrices(
    x: str,
    w: str,
    out: str,
    *,
    rows: int,
    columns: int,
    terms: int,
    x_strides: tuple[int, int],
    w_strides: tuple[int, int],
    out_strides: tuple[int, int],
    epilogue: Epilogue = PLAIN,
    adapter: str = "",
    tile: Tile | None = None,
) -> Recipe:
    """out[m, n] = sum of x[m, k] * w[k, n]; strides are those of (m, k), (k, n) and (m, n). A bias has a place a column."""
    wide = x_strides[1] == 1 and x_strides[0] % 4 == 0 and terms % 4 == 0
    geometry = """
struct Row { base: i32, ok: bool }
struct Term { offset: i32 }
fn row_of(z: i32, m: i32) -> Row { return Row(m * params.xm, m < params.rows); }
fn term_of(z: i32, k: i32) -> Term { return Term(k * params.xk); }
fn has(r: Row, t: Term) -> bool { return r.ok; }
fn place(z: i32, m: i32, n: i32) -> i32 { return m * params.om + n * params.on; }
fn channel(z: i32, n: i32) -> i32 { return n; }
"""
    numbers: Mapping[str, int] = dict(
        zip(("xm", "xk", "wk", "wn", "om", "on"), (*x_strides, *w_strides, *out_strides), strict=True)
    )
    factors = Factors(
        name="multiply",
        geometry=geometry,
        left="fn left(r: Row, t: Term) -> f32 { return x[r.base + t.offset]; }\n",
        left4="fn left4(r: Row, t: Term) -> vec4<f32> { return x[(r.base + t.offset) / 4]; }\n",
        right="fn right(z: i32, n: i32, k: i32) -> f32 { return w[k * params.wk + n * params.wn]; }\n",
        sizes={
            "products": 1,
            "rows": rows,
            "columns": columns,
            "terms": terms,
            "total": rows * columns,
            "inner": 1 if out_strides[1] == 1 else rows,
            "channels": columns,
            **numbers,
        },
        holes=False,
        wide=wide,
        columns_first=out_strides[1] == 1,
    )
    return product(factors, x, w, out, epilogue=epilogue, adapter=adapter, tile=tile)


__all__ = ["matrices", "totals"]
