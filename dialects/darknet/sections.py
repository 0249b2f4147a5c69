"""
The sections of a cfg that are layers, with the keys that inference reads and their defaults.

The source is the parser of AlexeyAB's fork (`src/parser.c`), and for `deconvolutional` that of
DarkNet itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeAlias

from lowerdeck.dialects.records import record

Key: TypeAlias = "int | float | str | list[int] | list[float] | None"

NO_SHARE = -1_000_000_000
"""`share_index` of a layer that has weights of its own."""

_CONVOLUTION = "groups=1 size=3 stride=1 dilation=1 pad=0 padding=0 batch_normalize=0 xnor=0"
_HEAD = "classes=20 num=1 mask=ints anchors=floats scale_x_y=1."

_TABLE = f"""
activation       : activation=linear
avgpool avg      :
batchnorm        :
connected conn   : output=1 activation=logistic batch_normalize=0
contrastive      :
control_channels : from=ints
conv_lstm        : output=1 {_CONVOLUTION} activation=linear peephole=0 bottleneck=0 shortcut=0
                   lstm_activation=tanh state_constrain=32
convolutional conv : filters=1 groups=1 size=1 stride=1 stride_x=-1 stride_y=-1 dilation=1 pad=0
                   padding=0 activation=logistic batch_normalize=0 cbn=0 antialiasing=0 binary=0
                   xnor=0 bin_output=0 flipped=0 share_index={NO_SHARE}
cost             :
crnn             : output=1 hidden=1 {_CONVOLUTION} activation=logistic shortcut=0
crop             : crop_height=1 crop_width=1 noadjust=0
deconvolutional deconv : filters=1 size=1 stride=1 pad=0 padding=0 activation=logistic
                   batch_normalize=0
detection        : classes=1 coords=1 num=1 side=7 softmax=0 sqrt=0
dropout          :
empty silence    :
Gaussian_yolo    : {_HEAD} yolo_point=center
gru              : output=1 batch_normalize=0
history          : history_size=4
implicit implicit_add implicit_mul : filters=128 atoms=1
local            : filters=1 size=1 stride=1 pad=0 activation=logistic
local_avgpool local_avg : stride=1 stride_x=none stride_y=none size=none padding=none
lstm             : output=1 batch_normalize=0
maxpool max      : stride=1 stride_x=none stride_y=none size=none padding=none maxpool_depth=0
                   out_channels=1 antialiasing=0
normalization lrn : alpha=.0001 beta=.75 kappa=1. size=5
region           : classes=20 coords=4 num=1 anchors=floats softmax=0 tree=text classfix=0
reorg            : stride=1 reverse=0
reorg3d          : stride=1 reverse=0
rnn              : output=1 hidden=1 activation=logistic batch_normalize=0 logistic=0 shortcut=0
route            : layers=ints groups=1 group_id=0
sam              : from=ints activation=linear
scale_channels   : from=ints scale_wh=0 activation=linear
shift_channels   : from=ints
shortcut         : from=ints activation=linear weights_type=none_ weights_normalization=none_
softmax soft     : groups=1 temperature=1. spatial=0. tree=text
upsample         : stride=2 scale=1.
yolo             : {_HEAD} new_coords=0
"""

_EMPTY = {"ints": "ints", "floats": "floats", "text": "text", "none": "int"}
"""The kinds of keys without a default."""

HEADS = frozenset({"Gaussian_yolo", "detection", "region", "yolo"})
"""Sections whose results are boxes."""

WITHOUT_OUTPUT = frozenset({"contrastive", "cost"})
"""Sections that only training computes anything of."""

NETWORK = ("net", "network")
"""The names of the first section."""

IGNORED = frozenset(
    """
    B1 B2 absolute adam adversarial_lr angle aspect assisted_excitation attention augment_speed
    badlabels_rejection_percentage batch beta_nms bias_match blur burn_in burnin_update clip
    cls_normalizer contrastive contrastive_color contrastive_jit_flip contrastive_neg_max
    coord_scale coordconv counters_per_class cutmix decay delta_normalizer dets_for_show
    dets_for_track dont_update dot dropblock dropblock_size_abs dropblock_size_rel
    dynamic_minibatch ema_alpha embedding_layer eps equidistant_point exposure flip focal_loss
    forced gamma gaussian_noise grad_centr hue ignore_thresh init_sequential_subdivisions
    iou_loss iou_normalizer iou_thresh iou_thresh_kind jitter label_smooth_eps learning_rate
    learning_rate_min letter_box log loss_scale map mask_scale max max_batches max_chart_loss
    max_crop max_delta maxpool_zero_nonmax mean min_crop mixup momentum mosaic mosaic_bound
    nms_kind noloss noobject_scale num_sigmas_reject_badlabels obj_normalizer object_scale
    objectness_smooth onlyforward optimized_memory policy power probability random ratio reorg
    rescore resize resize_step rotate saturation scales seq_scales sequential_subdivisions
    sgdr_cycle sgdr_mult shift show_details show_receptive_field sim_thresh std step steps
    stopbackward stream stretch stretch_sway subdivisions sway thresh time_normalizer time_steps
    track track_ciou_norm track_history_size train_only_bn truth_thresh try_fix_nan type
    uc_normalizer unsupervised use_cuda_graph wait_stream weights_reject_freq
    workspace_size_limit_MB yolo_layer class_scale height width channels inputs dontload
    dontloadscales
    """.split()
)
"""Keys that training, tracking or the program around a net reads."""


@record
class Section:
    """A section that is a layer."""

    name: str
    keys: Mapping[str, tuple[str, Key]]
    """The kind (`int`, `float`, `text`, `ints`, `floats`) and default of each key."""


@cache
def sections() -> Mapping[str, Section]:
    """The sections by each of their names."""
    found: dict[str, Section] = {}
    for line in _TABLE.replace("\n                   ", " ").strip().splitlines():
        names, _, keys = line.partition(":")
        section = Section(names.split()[0], dict(map(_key, keys.split())))
        found.update(dict.fromkeys(names.split(), section))
    return found


def _key(text: str) -> tuple[str, tuple[str, Key]]:
    name, _, default = text.partition("=")
    if default in _EMPTY:
        return name, (_EMPTY[default], None)
    if default.lstrip("-").isdecimal():
        return name, ("int", int(default))
    if default[0] in ".0123456789":
        return name, ("float", float(default))
    return name, ("text", default.rstrip("_"))


def known_keys() -> frozenset[str]:
    """All keys that any section reads."""
    return IGNORED.union(*(section.keys for section in sections().values()))


def section_names() -> Iterator[str]:
    """The sections, each by its first name."""
    return (name for name, section in sections().items() if name == section.name)
