"""The catalogue's lines of agents that predict where people look."""

from __future__ import annotations

from agents.entry import EXACT, VARIANT, Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "gbvs",
        "agents.attention.gbvs:GraphSaliencyAgent",
        ("attention_prediction",),
        "graph-based visual saliency; maximum with inhibition of return",
        "Harel, Koch, Perona 2006",
        EXACT,
    ),
    *(
        Entry(
            name,
            "agents.attention.ivsn:IVSNAgent",
            ("attention_prediction",),
            summary,
            "Zhang et al. 2018",
            VARIANT,  # torchvision's weights, where the authors had Caffe's; early layer and bottom-up map unstated
            "BSD-3-Clause",
            settings=settings,
        )
        for name, summary, settings in (
            ("ivsn", "invariant visual search: VGG16's features of the scene that resemble the target's", {}),
            ("ivsn-notarget", "invariant visual search without its target", {"modulation": "none"}),
            ("ivsn-layer", "invariant visual search by features of an early layer", {"target_layer": "pool2"}),
        )
    ),
    Entry(
        "return-fixations",
        "agents.attention.return_fixations:ReturnFixations",
        ("attention_prediction",),
        "saliency or similarity, people's saccades, and a memory that fades, so that places are looked at again",
        "Zhang et al. 2022",
        EXACT,
        "BSD-3-Clause; saccades MIT",
        settings={"saccades": "amplitudes"},  # as the authors' program draws its prior
    ),
    Entry(
        "eccnet",
        "agents.attention.eccnet:EccNetAgent",
        ("attention_prediction",),
        "EccNet: search with vision that fades from the fixation",
        "Gupta et al. 2021",
        VARIANT,  # torchvision's weights, where the authors had Keras's
        "BSD-3-Clause",
    ),
    Entry(
        "deepgaze3",
        "agents.attention.deepgaze:DeepGazeAgent",
        ("attention_prediction",),
        "DeepGaze III; maximum of its density with inhibition of return",
        "Kümmerer, Bethge, Wallis 2022",
        EXACT,
        "none given",
    ),
    Entry(
        "center",
        "agents.attention.baselines:CenterAgent",
        ("attention_prediction",),
        "baseline: a Gaussian about the centre, whatever the picture",
        "Clarke, Tatler 2014",
    ),
    Entry(
        "random",
        "agents.attention.baselines:RandomAgent",
        ("attention_prediction",),
        "baseline: any pixel as likely as any other",
        "the baseline of every scanpath study",
    ),
)
