"""Ray's placement groups, by which a worker gets the very GPU that it was given a place on.

Ray itself packs actors that ask for a part of a GPU onto the first GPU of a node. So each GPU that workers have is
reserved as a group of its own, and workers that share it take their parts of that group; a model on several GPUs has
them in one group. Host memory is not in Ray's books for workers on GPUs: :mod:`serving.scheduling.placement` counts it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from serving.scheduling.placement import Node, Place


@dataclass(slots=True)
class GpuGroups:
    """The groups of places on ``nodes``, made when a worker first needs one; ``keep`` gives back the others' GPUs."""

    nodes: Sequence[Node]
    _groups: dict[Place, Any] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def strategy(self, place: Place) -> Any:
        """The scheduling strategy of an actor that is to be there, and nowhere else unless the node is lost."""
        from ray.util import placement_group
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

        node = self.nodes[place.node].id
        if not place.gpus:
            return NodeAffinitySchedulingStrategy(node, soft=True)
        with self._lock:
            if place not in self._groups:
                bundles = [{"GPU": float(len(place.gpus))}]
                self._groups[place] = placement_group(bundles, "STRICT_PACK", _soft_target_node_id=node)
            return PlacementGroupSchedulingStrategy(self._groups[place], 0)

    def keep(self, places: Collection[Place]) -> None:
        """Remove the groups of all places but these; whatever still runs there ends."""
        with self._lock:
            left = {place: self._groups.pop(place) for place in [*self._groups] if place not in places}
        if left:
            import ray
            from ray.util import remove_placement_group

            for group in left.values() if ray.is_initialized() else ():
                remove_placement_group(group)
