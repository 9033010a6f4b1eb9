"""Numbers as tables and sentences show them."""


def number(value: float) -> str:
    """Returns `value` with three significant digits, and all digits before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0").rstrip(".") if "e" in text else text


def interval(value: float, low: float, high: float) -> str:
    """Returns `value` with the interval `low` to `high`, which is left out if it is a point."""
    shown = number(value)
    ends = number(low), number(high)
    return shown if ends == (shown, shown) else f"{shown} ({ends[0]} to {ends[1]})"


def duration(seconds: float) -> str:
    """Returns a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{number(seconds)} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
