"""Colours (sRGB), CSS3 names, and the eleven colour words of the test.

The map of names to words was lost; it is reconstructed after kreimanlab/TuringTest,
colorDetection/Feedback_Color/color_extraction.ipynb, and the published answers.
"""

from collections.abc import Mapping, Set
from functools import cache
from types import MappingProxyType

from PIL import ImageColor

RGB = tuple[int, int, int]
"""Red, green and blue, each 0 to 255."""
Lab = tuple[float, float, float]
"""CIELAB's L*, a* and b*."""

_NAMES = {
    "red": "crimson darkred firebrick indianred maroon red tomato",
    "pink": "deeppink hotpink lightcoral lightpink magenta mediumvioletred mistyrose palevioletred pink salmon",
    "orange": """
        bisque coral darkorange darksalmon lightsalmon moccasin navajowhite orange orangered papayawhip
        peachpuff sandybrown
    """,
    "yellow": "cornsilk gold goldenrod khaki lemonchiffon lightgoldenrodyellow lightyellow palegoldenrod yellow",
    "purple": """
        blueviolet darkmagenta darkorchid darkviolet indigo lavender mediumorchid mediumpurple orchid plum
        purple thistle violet
    """,
    "green": """
        aquamarine chartreuse darkgreen darkkhaki darkolivegreen darkseagreen darkslategray forestgreen green
        greenyellow lawngreen lightgreen lightseagreen lime limegreen mediumaquamarine mediumseagreen
        mediumspringgreen olive olivedrab palegreen seagreen springgreen yellowgreen
    """,
    "blue": """
        blue cadetblue cornflowerblue cyan darkblue darkcyan darkslateblue darkturquoise deepskyblue dodgerblue
        lightblue lightcyan lightskyblue lightsteelblue mediumblue mediumslateblue mediumturquoise midnightblue
        navy paleturquoise powderblue royalblue skyblue slateblue steelblue teal turquoise
    """,
    "brown": "brown burlywood chocolate darkgoldenrod peru rosybrown saddlebrown sienna tan wheat",
    "gray": "darkgray dimgray gainsboro gray lightgray lightslategray silver slategray",
    "black": "black",
    "white": """
        aliceblue antiquewhite azure beige blanchedalmond floralwhite ghostwhite honeydew ivory lavenderblush
        linen mintcream oldlace seashell snow white whitesmoke
    """,
}

WORD: Mapping[str, str] = MappingProxyType(dict(sorted((n, word) for word, row in _NAMES.items() for n in row.split())))
"""The word for each of our CSS3 names, in alphabetical order of the names."""

CSS3: Mapping[str, RGB] = MappingProxyType({name: ImageColor.getrgb(name)[:3] for name in WORD})
"""The 138 CSS3 colours by our name for them, in alphabetical order."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {name.replace("gray", "grey"): name for name in CSS3 if "gray" in name} | {"aqua": "cyan", "fuchsia": "magenta"}
)
"""The nine other CSS3 names, each with ours."""

PALE = frozenset(name for name, rgb in CSS3.items() if min(rgb) >= 205 and max(rgb) - min(rgb) > 5)
"""The 22 names for which the published map is taken to say "none"; white, whitesmoke, snow and light grays are not
among them."""

FOCAL: Mapping[str, Lab] = MappingProxyType(
    {
        "red": (40.7, 59.0, 29.9),  # Munsell 5R 4/14
        "pink": (80.5, 23.0, 13.0),  # 5R 8/6
        "orange": (61.0, 44.3, 79.1),  # 2.5YR 6/16
        "yellow": (80.5, 7.2, 108.2),  # 2.5Y 8/16
        "purple": (30.4, 36.6, -31.9),  # 5P 3/10
        "green": (51.0, -52.2, 9.6),  # 7.5G 5/10
        "blue": (51.0, -3.4, -47.7),  # 2.5PB 5/12
        "brown": (30.4, 18.0, 30.0),  # 5YR 3/6
    }
)
"""The best examples of the eight chromatic words, in CIELAB.

They are the Munsell chips of Heider, "Universals in color naming and memory" (1972), after Berlin and Kay (1969),
converted with the renotation of 1943 under its own illuminant, C.
"""


def word_of(name: str) -> str:
    """The colour word for a CSS3 name. Raises KeyError for any other name."""
    return WORD[ALIASES.get(name, name)]


def nearest_rgb(rgb: RGB, left_out: Set[str] = frozenset()) -> str:
    """The CSS3 name nearest to ``rgb`` by Euclidean distance, of equally near ones the first in the alphabet;
    ``left_out`` names do not count."""
    names = [name for name in CSS3 if name not in left_out]
    return min(names, key=lambda name: sum((ours - its) ** 2 for ours, its in zip(CSS3[name], rgb, strict=True)))


def nearest_word(rgb: RGB) -> str:
    """The word whose prototype is nearest to ``rgb`` in CIELAB (CIE 1976): CSS3 colours and the focal colours."""
    lightness, a, b = lab(rgb)
    return min(_prototypes(), key=lambda p: (p[0][0] - lightness) ** 2 + (p[0][1] - a) ** 2 + (p[0][2] - b) ** 2)[1]


def lab(rgb: RGB) -> Lab:
    """``rgb`` as CIELAB: IEC 61966-2-1, white point D65, 2 degree observer."""
    r, g, b = map(_linear_light, rgb)
    x = _response((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047)
    y = _response(0.2126729 * r + 0.7151522 * g + 0.0721750 * b)
    z = _response((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@cache
def _prototypes() -> tuple[tuple[Lab, str], ...]:
    words = {**WORD, "darkslategray": "gray"}
    return (*((lab(rgb), words[name]) for name, rgb in CSS3.items()), *((focus, word) for word, focus in FOCAL.items()))


def _linear_light(level: int) -> float:
    """The linear light, 0 to 1, of a ``level`` from 0 to 255."""
    value = level / 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _response(value: float) -> float:
    return value ** (1 / 3) if value > (6 / 29) ** 3 else value / (3 * (6 / 29) ** 2) + 4 / 29
