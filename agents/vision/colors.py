"""Colour names: the CSS3 names, the eleven colour words of the test, and the way from a colour to either.

CSS3 names are those of CSS Color Module Level 3 (section 4.3, the SVG 1.0 keywords): 147 names for 138 colours. Where
two names mean one colour, ours is the one of :data:`CSS3`, the other an alias: gray and not grey (the spelling of
the eleven words), cyan and not aqua, magenta and not fuchsia.

**The map from CSS3 names to the eleven words was made by hand for this project.** The published agents used such a map
too, but it was never published and is lost: ours is a reconstruction of its kind, not of its entries. The rules:

- a name that ends in one of the eleven words means that word, so a darkslategray is gray and a rosybrown brown, except
  seven, whose colour nobody would call so: aliceblue and navajowhite (a white; a light orange), greenyellow (green),
  mediumvioletred and palevioletred (pink), orangered and sandybrown (orange);
- another name means what a native speaker would call the colour if only the eleven words were allowed; where it
  lies between two of them, the thing decides after which it is named (chocolate brown, papayawhip orange, teal blue);
- what is so pale that it passes for white on a page is white (ivory, mintcream, beige), unless its name says a hue
  (lightcyan, lightyellow, lavender).

The perceptual variant (:func:`nearest_word`) goes to the words directly: the word of the nearest prototype by CIELAB
distance (CIE 1976). A word has several prototypes: the CSS3 colours that the map gives it and, for the eight chromatic
words, the focal colour (:data:`FOCAL`). One prototype per word, its own CSS3 value, will not do: a pale blue sky is
then nearer to white or gray than to blue, and wood is nearer to gray than to CSS's reddish brown.

All colours are sRGB, 0 to 255 per channel, as (r, g, b).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

RGB = tuple[int, int, int]
Lab = tuple[float, float, float]

WORDS = ("red", "pink", "orange", "yellow", "purple", "green", "blue", "brown", "gray", "black", "white")
"""The eleven words, in the order in which people were offered them."""

_BY_WORD = {
    "red": """
        crimson:dc143c darkred:8b0000 firebrick:b22222 indianred:cd5c5c maroon:800000 red:ff0000
        tomato:ff6347
    """,
    "pink": """
        deeppink:ff1493 hotpink:ff69b4 lightcoral:f08080 lightpink:ffb6c1 magenta:ff00ff
        mediumvioletred:c71585 mistyrose:ffe4e1 palevioletred:db7093 pink:ffc0cb salmon:fa8072
    """,
    "orange": """
        bisque:ffe4c4 coral:ff7f50 darkorange:ff8c00 darksalmon:e9967a lightsalmon:ffa07a
        moccasin:ffe4b5 navajowhite:ffdead orange:ffa500 orangered:ff4500 papayawhip:ffefd5
        peachpuff:ffdab9 sandybrown:f4a460
    """,
    "yellow": """
        cornsilk:fff8dc gold:ffd700 goldenrod:daa520 khaki:f0e68c lemonchiffon:fffacd
        lightgoldenrodyellow:fafad2 lightyellow:ffffe0 palegoldenrod:eee8aa yellow:ffff00
    """,
    "purple": """
        blueviolet:8a2be2 darkmagenta:8b008b darkorchid:9932cc darkviolet:9400d3 indigo:4b0082
        lavender:e6e6fa mediumorchid:ba55d3 mediumpurple:9370db orchid:da70d6 plum:dda0dd purple:800080
        thistle:d8bfd8 violet:ee82ee
    """,
    "green": """
        aquamarine:7fffd4 chartreuse:7fff00 darkgreen:006400 darkkhaki:bdb76b darkolivegreen:556b2f
        darkseagreen:8fbc8f forestgreen:228b22 green:008000 greenyellow:adff2f lawngreen:7cfc00
        lightgreen:90ee90 lightseagreen:20b2aa lime:00ff00 limegreen:32cd32 mediumaquamarine:66cdaa
        mediumseagreen:3cb371 mediumspringgreen:00fa9a olive:808000 olivedrab:6b8e23 palegreen:98fb98
        seagreen:2e8b57 springgreen:00ff7f yellowgreen:9acd32
    """,
    "blue": """
        blue:0000ff cadetblue:5f9ea0 cornflowerblue:6495ed cyan:00ffff darkblue:00008b darkcyan:008b8b
        darkslateblue:483d8b darkturquoise:00ced1 deepskyblue:00bfff dodgerblue:1e90ff lightblue:add8e6
        lightcyan:e0ffff lightskyblue:87cefa lightsteelblue:b0c4de mediumblue:0000cd
        mediumslateblue:7b68ee mediumturquoise:48d1cc midnightblue:191970 navy:000080
        paleturquoise:afeeee powderblue:b0e0e6 royalblue:4169e1 skyblue:87ceeb slateblue:6a5acd
        steelblue:4682b4 teal:008080 turquoise:40e0d0
    """,
    "brown": """
        brown:a52a2a burlywood:deb887 chocolate:d2691e darkgoldenrod:b8860b peru:cd853f rosybrown:bc8f8f
        saddlebrown:8b4513 sienna:a0522d tan:d2b48c wheat:f5deb3
    """,
    "gray": """
        darkgray:a9a9a9 darkslategray:2f4f4f dimgray:696969 gainsboro:dcdcdc gray:808080
        lightgray:d3d3d3 lightslategray:778899 silver:c0c0c0 slategray:708090
    """,
    "black": """
        black:000000
    """,
    "white": """
        aliceblue:f0f8ff antiquewhite:faebd7 azure:f0ffff beige:f5f5dc blanchedalmond:ffebcd
        floralwhite:fffaf0 ghostwhite:f8f8ff honeydew:f0fff0 ivory:fffff0 lavenderblush:fff0f5
        linen:faf0e6 mintcream:f5fffa oldlace:fdf5e6 seashell:fff5ee snow:fffafa white:ffffff
        whitesmoke:f5f5f5
    """,
}

_ROWS = sorted(
    (name, value, word) for word, row in _BY_WORD.items() for name, _, value in (p.partition(":") for p in row.split())
)

CSS3: Mapping[str, RGB] = MappingProxyType(
    {name: (int(value[:2], 16), int(value[2:4], 16), int(value[4:], 16)) for name, value, _ in _ROWS}
)
"""The 138 CSS3 colours by our name for them, in alphabetical order."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {name.replace("gray", "grey"): name for name in CSS3 if "gray" in name} | {"aqua": "cyan", "fuchsia": "magenta"}
)
"""The nine other CSS3 names, each with ours."""

WORD: Mapping[str, str] = MappingProxyType({name: word for name, _, word in _ROWS})
"""The word for each name in :data:`CSS3`."""

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


def nearest_rgb(rgb: RGB) -> str:
    """The CSS3 name nearest to a colour by Euclidean distance in RGB; of equally near ones the first in the
    alphabet."""
    r, g, b = rgb
    return min(CSS3, key=lambda name: (CSS3[name][0] - r) ** 2 + (CSS3[name][1] - g) ** 2 + (CSS3[name][2] - b) ** 2)


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
    return (*((lab(rgb), WORD[name]) for name, rgb in CSS3.items()), *((focus, word) for word, focus in FOCAL.items()))


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _response(value: float) -> float:
    """The compressed response of one channel: a cube root with a straight foot below (6/29) cubed."""
    return value ** (1 / 3) if value > (6 / 29) ** 3 else value / (3 * (6 / 29) ** 2) + 4 / 29
