"""Style and fixed parts of the report's page."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --dim: #667; --paper: #fff; --card: #f5f6f8; --line: #c8ccd4;
  --good: #1a7f37; --bad: #c02f2f; --warn: #a05a00; --on: #2f7de12b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --dim: #9aa; --paper: #15171a; --card: #1e2126;
  --line: #3a3f47; --good: #4cc26a; --bad: #ff7b72; --warn: #e3a04a; --on: #5aa0ff33; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.2rem 3rem; max-width: 1400px; font: 14px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; margin: .4rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.why { text-align: left; } th { color: var(--dim); font-weight: 600; }
.scroll { overflow-x: auto; max-height: 28rem; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; }
summary { cursor: pointer; padding: .5rem .8rem; font-weight: 600; } .body { padding: 0 .8rem .8rem; }
.film { display: flex; gap: 3px; overflow-x: auto; } .film img { height: 110px; border-radius: 3px; }
.film figure { margin: 0; } .film figcaption { font-size: 11px; color: var(--dim); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(360px, 1fr)); gap: .6rem; }
.plots figure, .over figure { margin: 0; } .plots figcaption, .over figcaption { font-size: 12px; font-weight: 600; }
.over { display: grid; grid-template-columns: repeat(auto-fill, minmax(400px, 1fr)); gap: .8rem; }
small { color: var(--dim); font-weight: 400; } svg { width: 100%; height: auto; display: block; }
.box { fill: none; stroke: var(--line); } .t { font-size: 10px; fill: var(--dim); } .no { fill: var(--dim); }
polyline { fill: none; stroke-width: 1.3; stroke-linejoin: round; } .bar { fill: #2f7de1; } .on { fill: var(--on); }
.mark { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 3 2; }
.success { color: var(--good); } .failure { color: var(--bad); } .timeout, .unlabelled { color: var(--warn); }
.out { color: var(--warn); font-weight: 600; }
.k::before { content: ""; display: inline-block; width: .7em; height: .7em; margin: 0 .25em 0 .6em;
  border-radius: 2px; background: var(--c); } .k { font-weight: 400; font-size: 11px; }
"""

_COLOURS = "#2f7de1 #d9480f #2b8a3e #ae3ec9 #c2940a #0c8599 #c2255c #6741d9 #5c940d #868e96".split()  # noqa: SIM905


def head(title: str) -> str:
    """Return the page up to its first heading; nothing is loaded from anywhere."""
    colours = "".join(
        f"polyline.c{i}{{stroke:{colour}}}.k{i}{{--c:{colour}}}" for i, colour in enumerate(_COLOURS)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title><style>{STYLE}{colours}</style></head><body>'
    )


FOOT = "</body></html>\n"
