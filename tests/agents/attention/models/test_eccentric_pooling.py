"""The numbers of the published model's eccentric pooling."""

from agents.attention.models.eccentric_pooling import Pooling


def test_the_published_rings_of_a_view_of_1600_pixels():
    """Worked out by hand: outer radii in output cells, windows in input cells."""
    slopes, scales = (0, 0, 0.07, 0.16, 0.32), (30, 15, 8, 4, 2)
    pools = [Pooling(*chosen) for chosen in zip(slopes, scales, strict=True)]
    rings = [pool.rings(1600 >> block) for block, pool in enumerate(pools)]
    assert [radius for radius, _ in rings[0]] == [*range(60, 406, 15)]
    assert [radius for radius, _ in rings[1]] == [*range(30, 207, 8)]
    assert [radius for radius, _ in rings[2]] == [*range(16, 101, 4)]
    assert [radius for radius, _ in rings[3]] == [*range(8, 51, 2)]
    assert [radius for radius, _ in rings[4]] == [*range(4, 26)]
    assert {window for block in (0, 1) for _, window in rings[block]} == {2}
    assert [w for _, w in rings[2]] == [2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 10, 11, 12, 12, 13, 13, 14]
    assert [w for _, w in rings[3]] == [2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14, 14, 15, 15]
    assert rings[4][:3] + rings[4][-2:] == [(4, 2), (5, 3), (6, 3), (24, 15), (25, 15)]
    assert [pool.ordinary(1600 >> block) for block, pool in enumerate(pools)] == [True, True, False, False, False]
