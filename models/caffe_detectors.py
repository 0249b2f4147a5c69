"""Nets of Caffe for detection, segmentation and poses at full size, with generated weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from models.caffe_nets import NetBuilder
from models.caffe_networks import CLASSIFIERS

# Detection


def _head(
    net: NetBuilder,
    sources: Sequence[tuple[str, dict[str, object]]],
    kernel: int,
    classes: int,
    **detection: object,
) -> None:
    """Boxes, scores and priors of all sources, and the detections from them."""
    parts: dict[str, list[str]] = {"loc": [], "conf": [], "priorbox": []}
    for x, prior in sources:
        ratios = len(cast("Sequence[float]", prior["aspect_ratio"]))
        boxes = 1 + ("max_size" in prior) + 2 * ratios
        for what, each in (("loc", 4), ("conf", classes)):
            name = f"{x}_mbox_{what}"
            gain = 0.2 if what == "loc" else 2.0
            y = net.conv(name, x, boxes * each, kernel, 1, kernel // 2, gain=gain)
            y = net.add(f"{name}_perm", "Permute", y, permute_param={"order": [0, 2, 3, 1]})
            parts[what].append(net.add(f"{name}_flat", "Flatten", y))
        prior |= {"flip": True, "clip": False, "variance": [0.1, 0.1, 0.2, 0.2], "offset": 0.5}
        box = net.add(f"{x}_mbox_priorbox", "PriorBox", x, "data", prior_box_param=prior)
        parts["priorbox"].append(box)
    loc, conf = (net.concat(f"mbox_{what}", *parts[what]) for what in ("loc", "conf"))
    priors = net.concat("mbox_priorbox", *parts["priorbox"], axis=2)
    shape = {"dim": [0, -1, classes]}
    conf = net.add("mbox_conf_reshape", "Reshape", conf, reshape_param={"shape": shape})
    conf = net.add("mbox_conf_softmax", "Softmax", conf, softmax_param={"axis": 2})
    conf = net.add("mbox_conf_flatten", "Flatten", conf)
    p = {"num_classes": classes, "code_type": "CENTER_SIZE", "background_label_id": 0, **detection}
    p["share_location"] = True
    net.add("detection_out", "DetectionOutput", loc, conf, priors, detection_output_param=p)


def vgg_ssd(net: NetBuilder) -> None:
    """SSD for images of 300 x 300 on VGG16."""
    x = net.input("data", 1, 3, 300, 300)
    for stage, depth in enumerate((2, 2, 3, 3, 3), 1):
        for layer in range(1, depth + 1):
            x = net.conv(f"conv{stage}_{layer}", x, min(64 << (stage - 1), 512), 3, 1, 1, relu=True)
        x = net.pool(f"pool{stage}", x, 2, 2) if stage < 5 else net.pool("pool5", x, 3, 1, 1)
    x = net.conv("fc6", x, 1024, 3, 1, 6, dilation=6, relu=True)
    fc7 = x = net.conv("fc7", x, 1024, 1, relu=True)
    extras: list[str] = []
    for stage, (narrow, wide, stride, pad) in enumerate(
        ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0)), 6
    ):
        x = net.conv(f"conv{stage}_1", x, narrow, 1, relu=True)
        x = net.conv(f"conv{stage}_2", x, wide, 3, stride, pad, relu=True)
        extras.append(x)
    norm = {"across_spatial": False, "channel_shared": False}
    first = net.add("conv4_3_norm", "Normalize", "conv4_3", norm_param=norm)
    sizes = (30.0, 60.0, 111.0, 162.0, 213.0, 264.0, 315.0)
    sources: list[tuple[str, dict[str, object]]] = []
    for k, x in enumerate((first, fc7, *extras)):
        ratios = [2.0] if k in (0, 4, 5) else [2.0, 3.0]
        prior: dict[str, object] = {"min_size": [sizes[k]], "max_size": [sizes[k + 1]]}
        sources.append((x, prior | {"aspect_ratio": ratios, "step": (8, 16, 32, 64, 100, 300)[k]}))
    nms = {"nms_threshold": 0.45, "top_k": 400}
    _head(net, sources, 3, 21, nms_param=nms, keep_top_k=200, confidence_threshold=0.01)


def mobilenet_ssd(net: NetBuilder) -> None:
    """SSD for images of 300 x 300 on MobileNet."""
    x = net.conv_norm("conv0", net.input("data", 1, 3, 300, 300), 32, 3, 2, 1)
    widths = (64, 128, 128, 256, 256, *[512] * 6, 1024, 1024)
    for number, width in enumerate(widths, 1):
        stride = 2 if number in (2, 4, 6, 12) else 1
        channels = net.shapes[x][1]
        x = net.conv_norm(f"conv{number}/dw", x, channels, 3, stride, 1, group=channels)
        x = net.conv_norm(f"conv{number}", x, width, 1)
    sources = ["conv11", x]
    for number, (narrow, wide) in enumerate(((256, 512), (128, 256), (128, 256), (64, 128)), 14):
        x = net.conv_norm(f"conv{number}_1", x, narrow, 1)
        x = net.conv_norm(f"conv{number}_2", x, wide, 3, 2, 1)
        sources.append(x)
    sizes = (60.0, 105.0, 150.0, 195.0, 240.0, 285.0, 300.0)
    priors: list[tuple[str, dict[str, object]]] = []
    for k, x in enumerate(sources):
        prior: dict[str, object] = {"min_size": [sizes[k]]}
        prior |= {"aspect_ratio": [2.0] if k == 0 else [2.0, 3.0]}
        priors.append((x, prior | ({"max_size": [sizes[k + 1]]} if k else {})))
    nms = {"nms_threshold": 0.45, "top_k": 100}
    _head(net, priors, 1, 21, nms_param=nms, keep_top_k=100, confidence_threshold=0.25)


def faster_rcnn(net: NetBuilder) -> None:
    """Faster R-CNN on VGG16, for images of 600 x 800; its Python layer proposes regions."""
    x = net.input("data", 1, 3, 600, 800)
    info = net.input("im_info", 1, 3)
    for stage, depth in enumerate((2, 2, 3, 3, 3), 1):
        for layer in range(1, depth + 1):
            x = net.conv(f"conv{stage}_{layer}", x, min(64 << (stage - 1), 512), 3, 1, 1, relu=True)
        x = net.pool(f"pool{stage}", x, 2, 2) if stage < 5 else x
    rpn = net.conv("rpn_conv/3x3", x, 512, 3, 1, 1, relu=True)
    score = net.conv("rpn_cls_score", rpn, 18, 1, gain=0.5)
    deltas = net.conv("rpn_bbox_pred", rpn, 36, 1, gain=0.1)

    def reshaped(name: str, x: str, channels: int) -> str:
        shape = {"dim": [0, channels, -1, 0]}
        return net.add(name, "Reshape", x, reshape_param={"shape": shape})

    score = net.add("rpn_cls_prob", "Softmax", reshaped("rpn_cls_score_reshape", score, 2))
    score = reshaped("rpn_cls_prob_reshape", score, 18)
    if net.plain:
        p = {"feat_stride": 16, "ratio": [0.5, 1, 2], "scale": [8, 16, 32]}
        rois = net.add("proposal", "Proposal", score, deltas, info, tops=["rois"], proposal_param=p)
    else:
        p = {"module": "rpn.proposal_layer", "layer": "ProposalLayer"}
        p["param_str"] = "'feat_stride': 16"
        rois = net.add("proposal", "Python", score, deltas, info, tops=["rois"], python_param=p)
    p = {"pooled_h": 7, "pooled_w": 7, "spatial_scale": 1 / 16}
    x = net.add("roi_pool5", "ROIPooling", x, rois, tops=["pool5"], roi_pooling_param=p)
    x = net.dense("fc7", net.dense("fc6", x, 4096, relu=True), 4096, relu=True)
    net.dense("bbox_pred", x, 84)
    net.softmax(net.dense("cls_score", x, 21), "cls_prob")


# Segmentation


def fcn8s(net: NetBuilder) -> None:
    """FCN-8s on VGG16, for images of 500 x 500 in 21 classes."""
    x = net.conv("conv1_1", net.input("data", 1, 3, 500, 500), 64, 3, 1, 100, relu=True)
    x = net.pool("pool1", net.conv("conv1_2", x, 64, 3, 1, 1, relu=True), 2, 2)
    for stage, depth in enumerate((2, 3, 3, 3), 2):
        for layer in range(1, depth + 1):
            x = net.conv(f"conv{stage}_{layer}", x, min(64 << (stage - 1), 512), 3, 1, 1, relu=True)
        x = net.pool(f"pool{stage}", x, 2, 2)
    x = net.conv("fc7", net.conv("fc6", x, 4096, 7, relu=True), 4096, 1, relu=True)

    def upscaled(name: str, x: str, kernel: int, stride: int) -> str:
        p = {"num_output": 21, "kernel_size": [kernel], "stride": [stride], "bias_term": False}
        return net.add(name, "Deconvolution", x, convolution_param=p)

    def cropped(name: str, x: str, like: str, offset: int) -> str:
        return net.add(name, "Crop", x, like, crop_param={"axis": 2, "offset": [offset]})

    x = upscaled("upscore2", net.conv("score_fr", x, 21, 1), 4, 2)
    side = net.conv("score_pool4", "pool4", 21, 1, gain=0.1)
    x = net.sum("fuse_pool4", x, cropped("score_pool4c", side, x, 5))
    x = upscaled("upscore_pool4", x, 4, 2)
    side = net.conv("score_pool3", "pool3", 21, 1, gain=0.1)
    x = net.sum("fuse_pool3", x, cropped("score_pool3c", side, x, 9))
    cropped("score", upscaled("upscore8", x, 16, 8), "data", 31)


def pspnet(net: NetBuilder) -> None:
    """PSPNet on a dilated ResNet-50, for images of 473 x 473 in 150 classes."""

    def cn(name: str, x: str, *rest: int, relu: bool = True, **options: float) -> str:
        y = net.conv(name, x, *rest, bias=False, **options)
        y = _stored_norm(net, y)
        return net.relu(y) if relu else y

    x = cn("conv1_1_3x3_s2", net.input("data", 1, 3, 473, 473), 64, 3, 2, 1)
    x = cn("conv1_3_3x3", cn("conv1_2_3x3", x, 64, 3, 1, 1), 128, 3, 1, 1)
    x = net.pool("pool1_3x3_s2", x, 3, 2, 1)
    for stage, (depth, stride, dilation) in enumerate(((3, 1, 1), (4, 2, 1), (6, 1, 2), (3, 1, 4))):
        width = 64 << stage
        for block in range(1, depth + 1):
            p, step, side = f"conv{stage + 2}_{block}", stride if block == 1 else 1, x
            if block == 1:
                side = cn(f"{p}_1x1_proj", x, 4 * width, 1, step, relu=False, gain=0.7)
            y = cn(f"{p}_1x1_reduce", x, width, 1, step)
            y = cn(f"{p}_3x3", y, width, 3, 1, dilation, dilation=dilation)
            y = cn(f"{p}_1x1_increase", y, 4 * width, 1, relu=False, gain=0.3)
            x = net.sum(p, side, y, relu=True)
    levels = [x]
    for size, kernel in ((1, 60), (2, 30), (3, 20), (6, 10)):
        y = net.pool(f"conv5_3_pool{size}", x, kernel, kernel, pool="AVE")
        y = cn(f"conv5_3_pool{size}_conv", y, 512, 1)
        levels.append(_interpolated(net, f"conv5_3_pool{size}_interp", y, 60))
    x = cn("conv5_4", net.concat("conv5_3_concat", *reversed(levels)), 512, 3, 1, 1)
    x = net.conv("conv6", net.add("conv5_4_drop", "Dropout", x, in_place=True), 150, 1)
    _interpolated(net, "conv6_interp", x, 473)


def _stored_norm(net: NetBuilder, x: str) -> str:
    """A BN layer with four blobs; plain nets write the same weights as BatchNorm and Scale."""
    if not net.plain:
        return net.add(f"{x}/bn", "BN", x, in_place=True, bn_param={"slope_filler": {"value": 1}})
    return net.norm(x, relu=False, name=f"{x}/bn", alias=f"{x}/bn")


def _interpolated(net: NetBuilder, name: str, x: str, size: int) -> str:
    return net.add(name, "Interp", x, interp_param={"height": size, "width": size})


def enet(net: NetBuilder) -> None:
    """ENet for images of 1024 x 512 in 19 classes, normalizations merged into convolutions."""
    x = net.input("data", 1, 3, 512, 1024)
    y = net.conv("conv0_1", x, 13, 3, 2, 1)
    x = _prelu(net, net.concat("concat0_1", y, net.pool("pool0_1", x, 2, 2)))
    shapes = [x]
    masks: list[str] = []
    x = _down(net, "1_0", x, 64, masks)
    for number in range(1, 5):
        x = _regular(net, f"1_{number}", x, 3, 1)
    shapes.append(x)
    x = _down(net, "2_0", x, 128, masks)
    for stage in (2, 3):
        for number, (kernel, dilation) in enumerate(
            ((3, 1), (3, 2), (5, 1), (3, 4), (3, 1), (3, 8), (5, 1), (3, 16)), 1
        ):
            x = _regular(net, f"{stage}_{number}", x, kernel, dilation)
    if net.plain:
        return  # OpenCV's reader knows no layer that takes a mask
    x = _up(net, "4_0", x, 64, masks.pop())
    x = _regular(net, "4_2", _regular(net, "4_1", x, 3, 1), 3, 1)
    x = _regular(net, "5_1", _up(net, "5_0", x, 16, masks.pop()), 3, 1)
    p = {"num_output": 19, "kernel_size": [2], "stride": [2]}
    net.add("deconv6_0_0", "Deconvolution", x, convolution_param=p)


def _prelu(net: NetBuilder, x: str) -> str:
    return net.add(f"{x}_prelu", "PReLU", x, in_place=True)


def _down(net: NetBuilder, name: str, x: str, channels: int, masks: list[str]) -> str:
    """Half as large; the mask of the pool goes to the masks."""
    narrow = net.shapes[x][1] // 4 if net.shapes[x][1] > 16 else 16
    y = _prelu(net, net.conv(f"conv{name}_0", x, narrow, 2, 2))
    y = _prelu(net, net.conv(f"conv{name}_1", y, narrow, 3, 1, 1))
    y = net.conv(f"conv{name}_2", y, channels, 1, gain=0.3)
    mask = f"pool{name}_mask"
    p = {"pool": "MAX", "kernel_size": 2, "stride": 2}
    tops = [f"pool{name}_4", mask]
    side = net.add(f"pool{name}_4", "Pooling", x, tops=tops, pooling_param=p)
    masks.append(mask)
    side = net.conv(f"conv{name}_4", side, channels, 1)
    return _prelu(net, net.sum(f"eltwise{name}_4", side, y))


def _regular(net: NetBuilder, name: str, x: str, kernel: int, dilation: int) -> str:
    channels = net.shapes[x][1]
    narrow = max(channels // 4, 4)
    y = _prelu(net, net.conv(f"conv{name}_0", x, narrow, 1))
    if kernel == 5:
        y = net.conv(f"conv{name}_1_a", y, narrow, (5, 1), 1, (2, 0), bias=False)
        y = net.conv(f"conv{name}_1", y, narrow, (1, 5), 1, (0, 2))
    else:
        y = net.conv(f"conv{name}_1", y, narrow, 3, 1, dilation, dilation=dilation)
    y = net.conv(f"conv{name}_2", _prelu(net, y), channels, 1, gain=0.3)
    return _prelu(net, net.sum(f"eltwise{name}_4", x, y))


def _up(net: NetBuilder, name: str, x: str, channels: int, mask: str) -> str:
    """Twice as large, by the mask of the pool that made it smaller."""
    narrow = max(channels // 4, 4)
    y = _prelu(net, net.conv(f"conv{name}_0", x, narrow, 1))
    p = {"num_output": narrow, "kernel_size": [2], "stride": [2]}
    y = _prelu(net, net.add(f"deconv{name}_1", "Deconvolution", y, convolution_param=p))
    y = net.conv(f"conv{name}_2", y, channels, 1, gain=0.3)
    side = net.conv(f"conv{name}_4", x, net.shapes[mask][1], 1)
    side = net.add(f"upsample{name}_4", "Upsample", side, mask, upsample_param={"scale": 2})
    if net.shapes[side][1] != channels:
        side = net.conv(f"conv{name}_5", side, channels, 1)
    return _prelu(net, net.sum(f"eltwise{name}_4", side, y))


# Poses


def openpose(net: NetBuilder) -> None:
    """OpenPose for images of 368 x 368: 18 body parts, six stages of two branches."""
    x = net.input("image", 1, 3, 368, 368)
    for stage, (depth, width) in enumerate(((2, 64), (2, 128), (4, 256), (2, 512)), 1):
        for layer in range(1, depth + 1):
            x = net.conv(f"conv{stage}_{layer}", x, width, 3, 1, 1, relu=True)
        x = net.pool(f"pool{stage}_stage1", x, 2, 2) if stage < 4 else x
    x = net.conv("conv4_3_CPM", x, 256, 3, 1, 1, relu=True)
    features = x = net.conv("conv4_4_CPM", x, 128, 3, 1, 1, relu=True)
    for stage in range(1, 7):
        ends: list[str] = []
        for branch, outputs in ((1, 38), (2, 19)):
            y, p = x, f"stage{stage}_L{branch}"
            if stage == 1:
                for layer in range(1, 4):
                    y = net.conv(f"conv5_{layer}_{p}", y, 128, 3, 1, 1, relu=True)
                y = net.conv(f"conv5_4_{p}", y, 512, 1, relu=True)
                ends.append(net.conv(f"conv5_5_{p}", y, outputs, 1, gain=0.7))
                continue
            for layer in range(1, 6):
                y = net.conv(f"Mconv{layer}_{p}", y, 128, 7, 1, 3, relu=True)
            y = net.conv(f"Mconv6_{p}", y, 128, 1, relu=True)
            ends.append(net.conv(f"Mconv7_{p}", y, outputs, 1, gain=0.7))
        if stage < 6:
            x = net.concat(f"concat_stage{stage + 1}", *ends, features)
        else:
            net.concat("net_output", *reversed(ends))


NETWORKS: dict[str, Callable[[NetBuilder], None]] = {
    **CLASSIFIERS,
    "enet": enet,
    "faster_rcnn": faster_rcnn,
    "fcn8s": fcn8s,
    "mobilenet_ssd": mobilenet_ssd,
    "openpose": openpose,
    "pspnet": pspnet,
    "vgg_ssd": vgg_ssd,
}
"""All nets by name."""


def build(name: str, *, plain: bool = False) -> NetBuilder:
    """A net by name, without its weights."""
    net = NetBuilder(name, plain=plain)
    NETWORKS[name](net)
    return net
