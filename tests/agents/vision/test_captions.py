"""What is noticed in captions, on captions that people and machines have written."""

from __future__ import annotations

import pytest

from agents.vision.captions import FLAGS, Flag, flags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a man in a red coat walks his dog along the beach", []),
        ("A mother's two-year-old boy, laughing; it is 5 o'clock - time to go.", []),
        ("Café tables under “Chestnut” trees — early in the morning’s light", []),
        ("", ["empty", "too_few_words"]),
        (" . , ", ["empty", "too_few_words"]),
        ("a dog on a couch", ["too_few_words"]),
        ("a dog on a big couch", []),
        ("with with with with", ["repeated_words", "too_few_words"]),
        ("a a man holding a plate of food", []),
        ("a a a man holding a plate of food", ["repeated_words"]),
        ("the cat and the dog and the bird and the fish near the tree", ["repeated_words"]),
        ("the cat and the dog and the bird and a fish near the tree", []),
        ("There is a cat on the old sofa", ["there_is"]),
        ("there are three cats on the old sofa", ["there_is"]),
        ("There's a cat on the very old sofa", ["there_is"]),
        ("over there is a cat on the sofa", []),
        ("an image of a cat on the sofa", ["mentions_image"]),
        ("Photographs of cats hang on the white wall", ["mentions_image"]),
        ("two photos of a cat on the sofa", ["mentions_image"]),
        ("a photographer with a camera on the beach", []),
        ("imagery and imagination fill the quiet old room", []),
        ("a man holding a sign that says $5 off", ["special_characters"]),
        ("wow! a man surfs on a huge wave", ["special_characters"]),
        ("a cat \x02 sits on the big red mat", ["special_characters"]),
        ("a person that is holding [ unused0 ] in the hand", ["special_tokens", "special_characters"]),
        ("a cat on a big red mat <|endoftext|>", ["special_tokens", "special_characters"]),
        ("a cat on a big red mat </s>", ["special_tokens", "special_characters"]),
        ("[SEP] a cat on a big red mat", ["special_tokens", "special_characters"]),
    ],
)
def test_what_is_noticed(text: str, expected: list[Flag]) -> None:
    assert flags(text) == expected


def test_what_generation_knows_stands_in_the_same_order() -> None:
    assert flags("a photo", ["too_many_words", "special_tokens"]) == [
        "special_tokens",
        "too_few_words",
        "too_many_words",
        "mentions_image",
    ]
    assert flags("a photo", FLAGS) == list(FLAGS)
