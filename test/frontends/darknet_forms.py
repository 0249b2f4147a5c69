"""Forms of the layers of DarkNet; `darknet_models/results.npz` has what DarkNet itself gives."""

from __future__ import annotations

from models.darknet_nets import conv, head, net, route

_IMAGE = dict(channels=4, height=6, width=5)
_ANCHORS = "anchors=3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20"
_ACTIVATIONS = [
    "elu",
    "gelu",
    "hardtan",
    "leaky",
    "lhtan",
    "linear",
    "loggy",
    "logistic",
    "plse",
    "ramp",
    "relie",
    "relu",
    "revleaky",
    "selu",
    "stair",
    "tanh",
]
_OF_CONVOLUTIONS = [
    "hard_mish",
    "mish",
    "swish",
    "normalize_channels",
    "normalize_channels_softmax",
    "normalize_channels_softmax_maxval",
]
TREE = "a\nb 0\nc 0\nd 0\ne 3\nf 3\ng 1\nh 1\ni 1 \n"
"""Of classes, some of which have the same parent."""

FORMS = {
    "activations": net(
        *[
            x
            for a in _ACTIVATIONS
            for x in (
                f"convolutional filters=4 size=1 activation={a}",
                f"activation activation={a}",
            )
        ],
        **_IMAGE,
    ),
    "conv_activations": net(
        *[f"convolutional filters=4 size=3 pad=1 activation={a}" for a in _OF_CONVOLUTIONS],
        **_IMAGE,
    ),
    "convs": net(
        "convolutional filters=6 size=3 groups=2 dilation=2 pad=1 activation=linear",
        "convolutional batch_normalize=1 filters=4 size=3 stride_x=2 stride_y=1 activation=linear",
        "conv filters=8 size=2 groups=4 stride=1 padding=2 activation=leaky",
        "convolutional filters=8 size=3 groups=8 stride=1 pad=1 activation=leaky flipped=1 cbn=1",
        "convolutional filters=5 size=1 stride=2 activation=leaky",
        **_IMAGE,
    ),
    "antialiasing": net(
        conv(6, 3, 2, "leaky", "antialiasing=1"),
        "maxpool size=2 stride=2 antialiasing=1",
        "convolutional filters=3 size=1 antialiasing=2 stride=1",
        channels=4,
        height=14,
        width=12,
    ),
    "share": net(
        conv(4, 3),
        conv(4, 3),
        conv(4, 3, 1, "leaky", "share_index=-1"),
        conv(4, 3, 1, "relu", "share_index=0"),
        **_IMAGE,
    ),
    "maxpools": net(
        "maxpool size=2 stride=1",
        "maxpool size=5 stride=1",
        "maxpool size=3 stride=2 padding=1",
        "maxpool stride=2",
        "max size=3 stride_x=1 stride_y=2 stride=1",
        **_IMAGE,
    ),
    "maxpools2": net("maxpool size=2 stride=3 padding=6", **_IMAGE),
    "depth": net("maxpool maxpool_depth=1 out_channels=2", **_IMAGE),
    "depth2": net("maxpool maxpool_depth=1 out_channels=3", **_IMAGE),
    "avgs": net(
        "local_avgpool size=3 stride=1",
        "local_avgpool size=2 stride=2 padding=0",
        "avgpool",
        "softmax",
        **_IMAGE,
    ),
    "route": net(
        conv(4, 3),
        conv(6, 3),
        route(-1, 0),
        "route layers=1,-2 groups=2 group_id=1",
        route(-4),
        "convolutional filters=2 size=1",
        route(0, -1),
        **_IMAGE,
    ),
    "route_flat": net(conv(4, 3), conv(6, 3, 2), route(-1, 0), "connected output=5", **_IMAGE),
    "shortcut": net(
        conv(4, 3),
        conv(4, 3),
        "shortcut from=-2 activation=leaky",
        conv(4, 1),
        "shortcut from=-2,-3,0",
        "shortcut from=-3 activation=mish",
        "shortcut from=-1,-2 activation=swish",
        **_IMAGE,
    ),
    "shortcut_c": net(
        conv(4, 3),
        conv(6, 3),
        "shortcut from=-2",
        conv(4, 3),
        "shortcut from=-2,0",
        "shortcut from=-1,-3 weights_type=per_channel weights_normalization=relu",
        **_IMAGE,
    ),
    "shortcut_w": net(
        conv(4, 3),
        conv(4, 3),
        "shortcut from=-2 weights_type=per_feature weights_normalization=avg_relu",
        conv(4, 1),
        "shortcut from=-2,-3 weights_type=per_channel weights_normalization=softmax",
        "shortcut from=-1,0 weights_type=per_layer weights_normalization=softmax",
        "shortcut from=-2,0 activation=leaky weights_type=per_channel weights_normalization=relu",
        **_IMAGE,
    ),
    "upsample": net(
        "upsample stride=2 scale=0.3",
        "upsample stride=-2",
        "upsample",
        "upsample stride=-2 scale=.5",
        **_IMAGE,
    ),
    "reorg": net(
        "reorg stride=2",
        "reorg stride=2 reverse=1",
        "reorg3d stride=2",
        channels=8,
        height=8,
        width=12,
    ),
    "reorg3": net("reorg3d stride=3", "reorg stride=3 reverse=1", channels=4, height=6, width=9),
    "sam": net(
        conv(4, 3),
        conv(4, 3, 1, "logistic"),
        "sam from=-2 activation=leaky",
        "avgpool",
        "scale_channels from=-2 activation=relu",
        "convolutional filters=1 size=1",
        "scale_channels scale_wh=1 from=-2",
        **_IMAGE,
    ),
    "softmax": net(
        "connected output=12 activation=linear", "softmax groups=3 temperature=2.5", **_IMAGE
    ),
    "softmax_": net(
        "convolutional filters=6 size=1 activation=linear",
        "softmax",
        "connected output=3",
        **_IMAGE,
    ),
    "lrn": net(
        "normalization",
        "lrn size=4 alpha=.5 beta=1.5 kappa=3",
        "normalization size=1 alpha=.2",
        channels=9,
        height=3,
        width=2,
    ),
    "lrn2": net("lrn size=5 alpha=.3", channels=3, height=3, width=2),
    "lrn3": net("lrn size=5 alpha=.3", channels=2, height=3, width=2),
    "batchnorm": net(
        "batchnorm", "batchnorm", "dropout probability=.5", "silence", "empty", conv(2), **_IMAGE
    ),
    "crop": net(
        "crop crop_height=5 crop_width=4 flip=1 shift=.1",
        "crop crop_height=4 crop_width=4 noadjust=1",
        "connected output=5 batch_normalize=1 activation=ramp",
        "dropout",
        "connected output=3 activation=linear",
        "softmax",
        "cost type=sse",
        **_IMAGE,
    ),
    "local": net(
        "local filters=3 size=3 stride=2 pad=1 activation=leaky",
        "local filters=5 size=2 stride=1",
        "connected output=5",
        **_IMAGE,
    ),
    "implicit": net(
        conv(4),
        "implicit filters=4",
        "scale_channels from=-2",
        "implicit filters=3 atoms=2",
        route(-2),
        **_IMAGE,
    ),
    "yolo": net(
        conv(8, 3, 2),
        *head("0,1,2", 3, "scale_x_y=1.2"),
        route(-3),
        *head("3,5", 3, "", "4,5,6,7,8,9,1"),
        channels=3,
        height=9,
        width=14,
    ),
    "yolo_new": net(
        "convolutional filters=21 size=3 stride=2 pad=1 activation=logistic",
        f"yolo mask=6,7,8 classes=2 num=9 new_coords=1 scale_x_y=2 {_ANCHORS}",
        channels=3,
        height=9,
        width=14,
    ),
    "gaussian": net(
        "convolutional filters=33 size=3 stride=2 pad=1 activation=linear",
        f"Gaussian_yolo mask=6,7,8 classes=2 num=9 scale_x_y=1.1 {_ANCHORS}",
        channels=3,
        height=9,
        width=14,
    ),
    "gaussian_l": net(
        "convolutional filters=11 size=3 stride=2 pad=1 activation=linear",
        "Gaussian_yolo yolo_point=left_top mask=0 classes=2 num=1 anchors=3,4",
        channels=3,
        height=9,
        width=14,
    ),
    "gaussian_r": net(
        "convolutional filters=11 size=3 stride=2 pad=1 activation=linear",
        "Gaussian_yolo yolo_point=right_bottom mask=0 classes=2 num=1 anchors=3,4",
        channels=3,
        height=9,
        width=14,
    ),
    "xnor": net(
        conv(5, 3),
        conv(32, 3, 1, "leaky", "xnor=1 bin_output=1"),
        conv(32, 3, 2, "leaky", "xnor=1 bin_output=1 groups=4"),
        "maxpool size=2 stride=1",
        "convolutional filters=6 size=1 xnor=1 bin_output=1 activation=mish",
        conv(6, 3, 1, "relu", "xnor=1"),
        "shortcut from=-2",
        **_IMAGE,
    ),
    "tree": net(
        "connected output=9 activation=linear",
        "softmax tree=data/words.tree temperature=.5",
        **_IMAGE,
    ),
    "region_tree": net(
        "convolutional filters=28 size=3 stride=2 pad=1 activation=linear",
        "region anchors=1.08,1.19,3.42,4.41 classes=9 num=2 softmax=1 classfix=-1 tree=words.tree",
        channels=3,
        height=9,
        width=14,
    ),
    "region": net(
        "convolutional filters=16 size=3 stride=2 pad=1 activation=linear",
        "region anchors=1.08,1.19,3.42,4.41 classes=3 coords=4 num=2 softmax=1",
        channels=3,
        height=9,
        width=14,
    ),
    "region_": net(
        "convolutional filters=16 size=3 stride=2 pad=1 activation=linear",
        "region anchors=1.08,1.19 classes=3 coords=4 num=2 classfix=-1",
        channels=3,
        height=9,
        width=14,
    ),
    "detection": net(
        "connected output=126 activation=linear",
        "detection classes=4 coords=4 num=2 side=3 sqrt=1 softmax=1",
        channels=3,
        height=9,
        width=14,
    ),
    "detection_": net(
        "connected output=126 activation=linear",
        "detection classes=4 coords=4 num=2 side=3",
        channels=3,
        height=9,
        width=14,
    ),
    "rnn": net(
        "rnn output=5 hidden=4 activation=leaky batch_normalize=1",
        "rnn output=6 hidden=3 activation=tanh logistic=1 shortcut=1",
        "rnn output=6 hidden=3 activation=tanh logistic=2",
        "connected output=7 activation=leaky",
        "softmax",
        "cost type=sse",
        inputs=7,
    ),
    "lstm": net(
        "lstm output=5 batch_normalize=1",
        "lstm output=6",
        "connected output=7 activation=leaky",
        inputs=7,
    ),
    "gru": net(
        "gru output=5 batch_normalize=1",
        "gru output=6",
        "connected output=7 activation=leaky",
        "softmax",
        inputs=7,
    ),
    "crnn": net(
        "crnn output=6 hidden=4 pad=1 activation=leaky batch_normalize=1",
        "crnn output=6 hidden=4 groups=2 size=1 activation=mish shortcut=1",
        "crnn output=2 hidden=4 size=3 dilation=2 pad=1 activation=relu",
        "avgpool",
        channels=4,
        height=5,
        width=6,
    ),
    "conv_lstm": net(
        "conv_lstm output=4 pad=1 size=3 batch_normalize=1 activation=leaky peephole=1",
        "conv_lstm output=6 size=1 groups=2 state_constrain=1 activation=linear",
        channels=4,
        height=5,
        width=6,
    ),
    "history": net(
        "history history_size=3", "conv filters=2 size=1", channels=4, height=5, width=6
    ),
}
"""Cfgs by name."""

CALLS = dict(rnn=3, lstm=3, gru=3, crnn=3, conv_lstm=3)
"""How often forms that remember are called."""
