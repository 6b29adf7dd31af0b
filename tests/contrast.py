"""Contrast of two colours, as WCAG 2.2 defines it."""

from matplotlib.colors import to_rgb


def luminance(colour):
    """Relative luminance of an sRGB colour, which is given as matplotlib takes it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """From 1, no difference, to 21, black on white."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
