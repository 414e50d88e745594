"""Which objects the annotations of a file say to be in a picture, and which not to be in it.

That a category has no annotation means that it is absent only where somebody looked for it. So nothing is said of a
picture without any annotation of objects: a list of pictures alone (COCO's image_info), a part of the annotations and
a picture that nobody annotated look the same. What is not known must not become `absent`: catch trials say of it that
it is not there, and judges who rightly see it in the picture are excluded by control questions.

- COCO's instances (crowds too) and keypoints: present is what is annotated, absent every other category of the file.
- Panoptic: the same of an annotation's `segments_info`.
- LVIS (Gupta, Dollar, Girshick 2019, section 2), and sets made likewise of Open Images: only the categories of an
  image's `neg_category_ids` were looked for in vain; `pos_category_ids` are present.
- `not_exhaustive_category_ids`: more of them may be there than is annotated, and they are never absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from serving.files.words import count
from serving.sets.coco_forms import Coco, CocoImage

NAMED = 3  # categories that a line names


@dataclass(slots=True)
class AnnotatedObjects:
    """Which classes of objects a file of annotations says are in a picture, and which are not."""

    named: Mapping[int, str]
    """The names of the file's categories, by id."""
    is_federated: bool
    """Whether the file says of each picture which classes were looked for, as LVIS does."""
    unlisted: int = 0
    """How many annotations are of pictures or categories that the file does not list."""
    _annotated: dict[int, set[int]] = field(default_factory=dict)  # categories by image, of annotated ones alone
    _in_every_pixel: bool = False

    @classmethod
    def of(cls, coco: Coco) -> AnnotatedObjects:
        """The objects of a parsed file of annotations."""
        objects = cls(
            {category.id: category.name for category in coco.categories},
            any(image.neg_category_ids is not None for image in coco.images),
        )
        listed = {image.id for image in coco.images}
        for annotation in coco.annotations:
            segments = annotation.segments_info or ()
            objects._in_every_pixel |= bool(segments)
            categories = [annotation.category_id, *(segment.category_id for segment in segments)]
            known = [category for category in categories if category is not None]
            if annotation.image_id not in listed:
                objects.unlisted += 1
                continue
            if known:
                objects._annotated.setdefault(annotation.image_id, set()).update(known)
            if objects.named:
                objects.unlisted += sum(category not in objects.named for category in known)
        return objects

    def fields(self, image: CocoImage) -> dict[str, list[str]]:
        """``present`` and ``absent`` of an image, each as far as it is known."""
        fields: dict[str, list[str]] = {}
        annotated = self._annotated.get(image.id, set()) | set(image.pos_category_ids)
        present = self._names(annotated)
        if annotated:
            fields["present"] = sorted(present)
        looked_for = self._looked_for(image)
        if looked_for is not None:
            fields["absent"] = sorted(looked_for - present - self._names(set(image.not_exhaustive_category_ids)))
        return fields

    def remarks(self, images: list[CocoImage]) -> Iterator[str]:
        """What a reader of the set must know, a line each."""
        without = sum(not self.fields(image) for image in images)
        if without == len(images):
            yield ("present, absent: not known, as the file has no annotation of objects; no stimulus has these fields")
            return
        if without:
            yield (
                f"present, absent: not known of {count(without, 'image')} without any annotation of objects, whose "
                "stimuli have neither field"
            )
        if self.is_federated:
            yield "absent: only what the file says of each image (neg_category_ids); nothing is known of the others"
        elif not self._in_every_pixel:
            yield from self._never_annotated()

    def _never_annotated(self) -> Iterator[str]:
        seen = self._names(set().union(*self._annotated.values()))
        never = sorted({*self.named.values()} - seen)
        if never:
            few = ", ".join([*never[:NAMED], "…"] if len(never) > NAMED else never)
            number = count(len(never), "category", "categories")
            yield (
                f"absent: also {number} of which the file has no annotation at all ({few}); if nobody looked for them, "
                "take them out of its `categories`"
            )

    def _looked_for(self, image: CocoImage) -> set[str] | None:
        if self.is_federated:
            return None if image.neg_category_ids is None else self._names(set(image.neg_category_ids))
        return {*self.named.values()} if image.id in self._annotated else None

    def _names(self, categories: set[int]) -> set[str]:
        return {self.named[category] for category in categories if category in self.named}
