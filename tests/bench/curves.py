"""Curves as SVG: panels side by side, the x axis logarithmic to base 2, the y axis from 0."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, NUM_COLUMNS = 440, 280, 62, 16, 34, 46, 2
COLOURS = ("#2f7d4f", "#b5562b", "#3b62a8", "#7a4b94")


def round_up(value):
    """The least of 1, 2, 5, 10, ... times a power of ten that is not below value."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def panel(title, x_label, y_label, series, left, top):
    """series: {name: [(x, y), ...]}, x above 0, y not below 0."""
    points = [point for line in series.values() for point in line]
    first, last = (math.log2(choose(x for x, _ in points)) for choose in (min, max))
    highest = round_up(max(y for _, y in points))

    def at(x, y):
        across = (math.log2(x) - first) / ((last - first) or 1)
        return (left + LEFT + across * (WIDTH - LEFT - RIGHT), top + HEIGHT - BOTTOM - y / highest * (HEIGHT - TOP - BOTTOM))

    def text(x, y, what, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{what}</text>'

    out = [text(left + LEFT, top + 20, title, "start", 'font-weight="bold"'),
           text(left + (WIDTH + LEFT) / 2, top + HEIGHT - 8, x_label), text(left + 4, top + TOP - 2, y_label, "start")]
    for part in range(5):
        y = highest * part / 4
        (x0, height), (x1, _) = at(2 ** first, y), at(2 ** last, y)
        out.append(f'<line x1="{x0:.1f}" y1="{height:.1f}" x2="{x1:.1f}" y2="{height:.1f}" stroke="#dddddd"/>')
        out.append(text(x0 - 6, height + 4, f"{y:g}", "end"))
    for x in sorted({x for x, _ in points}):
        out.append(text(*at(x, 0)[:1], top + HEIGHT - BOTTOM + 16, f"{x:g}"))
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*point) for point in line)]
        out.append(text(left + WIDTH - RIGHT, top + HEIGHT - BOTTOM - 10 - 14 * number, name, "end", f'fill="{colour}"'))
    return out


def svg(panels):
    """panels: [(title, x_label, y_label, series), ...]."""
    rows = -(-len(panels) // NUM_COLUMNS)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {NUM_COLUMNS * WIDTH} {rows * HEIGHT}" font-family="sans-serif" font-size="11">',
           f'<rect width="{NUM_COLUMNS * WIDTH}" height="{rows * HEIGHT}" fill="#ffffff"/>']
    for number, one in enumerate(panels):
        out += panel(*one, number % NUM_COLUMNS * WIDTH, number // NUM_COLUMNS * HEIGHT)
    return "\n".join(out + ["</svg>", ""])
