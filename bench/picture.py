"""The figures as bars: one group for each course, one bar for each contender. SVG, written by hand."""

from collections.abc import Sequence
from html import escape
from statistics import median

from bench.race import Result
from bench.table import grouped

COLOURS = {"barnabas": "#d1495b", "mm2-tuned": "#30638e", "mm2-bare": "#003d5b", "mm2": "#8fb8de", "loop": "#9a9a9a"}
OTHER = "#edae49"
WIDTH, LABEL, BAR, GAP, TOP = 900, 190, 18, 16, 56


def bars(results: Sequence[Result], title: str) -> str:
    """Each course has a scale of its own, up to its fastest contender; the figures stand beside the bars."""
    courses: dict[str, list[tuple[str, float]]] = {}
    for group in grouped(results):
        parts = [result.steady.rate for result in group if result.steady]
        name = f"{group[0].shape}, {group[0].partitions} partitions"
        courses.setdefault(name, []).append((group[0].contender, median(parts) if parts else 0.0))
    body, y = [], TOP
    for name, line in courses.items():
        body.append(_text(LABEL - 10, y + len(line) * BAR / 2 + 4, name, "end"))
        fastest = max(rate for _, rate in line) or 1.0
        for contender, rate in line:
            length = (WIDTH - LABEL - 190) * rate / fastest
            fill = COLOURS.get(contender, OTHER)
            body.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 3}" fill="{fill}"/>')
            words = f"{rate:,.0f} {contender}" if rate else f"– {contender}"
            body.append(_text(LABEL + length + 6, y + BAR - 6, words))
            y += BAR
        y += GAP
    head = _text(WIDTH / 2, 24, title, "middle", 15) + _text(
        WIDTH / 2, 42, "records a second; longer is better", "middle"
    )
    size = f'width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
    paper = f'<rect width="{WIDTH}" height="{y}" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', paper, head, *body, "</svg>\n"])


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 12) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} font-family="sans-serif" fill="#222">{escape(words)}</text>'
