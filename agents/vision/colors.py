"""Colour names: the CSS3 names, the eleven colour words of the test, and the way from a colour to either.

CSS3 names are those of CSS Color Module Level 3 (section 4.3, the SVG 1.0 keywords): 147 names for 138 colours. Where
two names mean one colour, ours is the one of :data:`CSS3`, the other an alias: gray and not grey (the spelling of
the eleven words), cyan and not aqua, magenta and not fuchsia.

**The map from CSS3 names to the eleven words was made by hand for this project.** The published agent used such a map
too, of which the program is to be read (kreimanlab/TuringTest, colorDetection/Feedback_Color/color_extraction.ipynb)
and the entries are not: ours is a reconstruction. The rules:

- a name that ends in one of the eleven words means that word, so a dimgray is gray and a rosybrown brown, except
  seven, whose colour nobody would call so: aliceblue and navajowhite (a white; a light orange), greenyellow (green),
  mediumvioletred and palevioletred (pink), orangered and sandybrown (orange); and darkslategray, which is green in
  the published answers (of 92, 39 % are green and 38 % gray; ours on 103 other COCO pictures were 5 and 76 % with
  it as gray, which does not fit, p = 3e-9, and with it as green fit, p = 0.37);
- another name means what a native speaker would call the colour if only the eleven words were allowed; where it
  lies between two of them, the thing decides after which it is named (chocolate brown, papayawhip orange, teal blue);
- what is so pale that it passes for white on a page is white (ivory, mintcream, beige), unless its name says a hue
  (lightcyan, lightyellow, lavender).

The published map said "none" of some names, which the program takes out before it looks for the nearest. Which they
were is not known; pale ones, as it seems. :data:`PALE` reconstructs them by a rule: every channel is 205 or more, and
they differ by more than 5, so that white, whitesmoke, snow and the light grays stay.

The perceptual variant (:func:`nearest_word`) goes to the words directly: the word of the nearest prototype by CIELAB
distance (CIE 1976). A word has several prototypes: the CSS3 colours that the map gives it and, for the eight chromatic
words, the focal colour (:data:`FOCAL`). Here darkslategray is gray, as it is called; as green it would make green of
every dark gray. One prototype per word, its own CSS3 value, will not do: a pale blue sky is
then nearer to white or gray than to blue, and wood is nearer to gray than to CSS's reddish brown.

All colours are sRGB, 0 to 255 per channel, as (r, g, b).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from types import MappingProxyType

from PIL import ImageColor

RGB = tuple[int, int, int]
Lab = tuple[float, float, float]

WORDS = ("red", "pink", "orange", "yellow", "purple", "green", "blue", "brown", "gray", "black", "white")
"""The eleven words, in the order in which people were offered them."""

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
"""The word for each of our names, in alphabetical order."""

CSS3: Mapping[str, RGB] = MappingProxyType({name: ImageColor.getrgb(name)[:3] for name in WORD})
"""The 138 CSS3 colours by our name for them, in alphabetical order."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {name.replace("gray", "grey"): name for name in CSS3 if "gray" in name} | {"aqua": "cyan", "fuchsia": "magenta"}
)
"""The nine other CSS3 names, each with ours."""

PALE = frozenset(name for name, rgb in CSS3.items() if min(rgb) >= 205 and max(rgb) - min(rgb) > 5)
"""The 22 names that stand for those of which the published map says "none"."""

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
"""The best examples of the eight chromatic words, in CIELAB: the Munsell chips of Heider, "Universals in color naming
and memory" (1972), after Berlin and Kay (1969), converted with the renotation of 1943 under its own illuminant, C."""


def word_of(name: str) -> str:
    """The one of the eleven words that stands for a CSS3 name (any of the 147). Raises KeyError for other names."""
    return WORD[ALIASES.get(name, name)]


def nearest_rgb(rgb: RGB, left_out: Set[str] = frozenset()) -> str:
    """The CSS3 name nearest to a colour by Euclidean distance in RGB, but for those ``left_out``; of equally near ones
    the first in the alphabet."""
    names = [name for name in CSS3 if name not in left_out]
    return min(names, key=lambda name: sum((ours - its) ** 2 for ours, its in zip(CSS3[name], rgb, strict=True)))


def nearest_word(rgb: RGB) -> str:
    """The one of the eleven words whose nearest prototype is nearest to a colour by CIELAB distance; of equally near
    ones that of the CSS3 name first in the alphabet."""
    lightness, a, b = lab(rgb)
    return min(_prototypes(), key=lambda p: (p[0][0] - lightness) ** 2 + (p[0][1] - a) ** 2 + (p[0][2] - b) ** 2)[1]


def lab(rgb: RGB) -> Lab:
    """CIELAB (L*, a*, b*) of an sRGB colour: IEC 61966-2-1, white point D65, 2 degree observer."""
    r, g, b = (_linear(value / 255) for value in rgb)
    x = _response((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047)
    y = _response(0.2126729 * r + 0.7151522 * g + 0.0721750 * b)
    z = _response((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@cache
def _prototypes() -> tuple[tuple[Lab, str], ...]:
    words = {**WORD, "darkslategray": "gray"}
    return (*((lab(rgb), words[name]) for name, rgb in CSS3.items()), *((focus, word) for word, focus in FOCAL.items()))


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _response(value: float) -> float:
    """The compressed response of one channel: a cube root with a straight foot below (6/29) cubed."""
    return value ** (1 / 3) if value > (6 / 29) ** 3 else value / (3 * (6 / 29) ** 2) + 4 / 29
