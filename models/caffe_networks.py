"""Well-known nets of Caffe at full size, as their prototxts have them, with generated weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.caffe_nets import NetBuilder

# Classification


def alexnet(net: NetBuilder) -> None:
    """AlexNet: normalization before the pools."""
    _alexnet(net, norm_first=True)


def caffenet(net: NetBuilder) -> None:
    """CaffeNet: normalization behind the pools."""
    _alexnet(net, norm_first=False)


def _alexnet(net: NetBuilder, norm_first: bool) -> None:
    lrn = {"local_size": 5, "alpha": 1e-4, "beta": 0.75}
    x = net.conv("conv1", net.input("data", 1, 3, 227, 227), 96, 11, 4, relu=True)
    for stage in (1, 2):
        if norm_first:
            x = net.pool(f"pool{stage}", net.add(f"norm{stage}", "LRN", x, lrn_param=lrn), 3, 2)
        else:
            x = net.add(f"norm{stage}", "LRN", net.pool(f"pool{stage}", x, 3, 2), lrn_param=lrn)
        if stage == 1:
            x = net.conv("conv2", x, 256, 5, 1, 2, group=2, relu=True)
    x = net.conv("conv3", x, 384, 3, 1, 1, relu=True)
    x = net.conv("conv4", x, 384, 3, 1, 1, group=2, relu=True)
    x = net.conv("conv5", x, 256, 3, 1, 1, group=2, relu=True)
    x = net.pool("pool5", x, 3, 2)
    x = net.dense("fc7", net.dense("fc6", x, 4096, relu=True), 4096, relu=True)
    net.softmax(net.dense("fc8", x, 1000))


def _vgg(net: NetBuilder, x: str, depths: Sequence[int], last_pool: bool = True) -> str:
    for stage, depth in enumerate(depths, 1):
        for layer in range(1, depth + 1):
            channels = min(64 << (stage - 1), 512)
            x = net.conv(f"conv{stage}_{layer}", x, channels, 3, 1, 1, relu=True)
        if stage < len(depths) or last_pool:
            x = net.pool(f"pool{stage}", x, 2, 2)
    return x


def _vgg_classifier(net: NetBuilder, depths: Sequence[int]) -> None:
    x = _vgg(net, net.input("data", 1, 3, 224, 224), depths)
    x = net.dense("fc7", net.dense("fc6", x, 4096, relu=True), 4096, relu=True)
    net.softmax(net.dense("fc8", x, 1000))


def vgg16(net: NetBuilder) -> None:
    """VGG with 16 layers."""
    _vgg_classifier(net, (2, 2, 3, 3, 3))


def vgg19(net: NetBuilder) -> None:
    """VGG with 19 layers."""
    _vgg_classifier(net, (2, 2, 4, 4, 4))


_INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(net: NetBuilder) -> None:
    """GoogLeNet, the first version, without its side outputs."""
    lrn = {"local_size": 5, "alpha": 1e-4, "beta": 0.75}
    x = net.conv("conv1/7x7_s2", net.input("data", 1, 3, 224, 224), 64, 7, 2, 3, relu=True)
    x = net.add("pool1/norm1", "LRN", net.pool("pool1/3x3_s2", x, 3, 2), lrn_param=lrn)
    x = net.conv("conv2/3x3_reduce", x, 64, 1, relu=True)
    x = net.conv("conv2/3x3", x, 192, 3, 1, 1, relu=True)
    x = net.pool("pool2/3x3_s2", net.add("conv2/norm2", "LRN", x, lrn_param=lrn), 3, 2)
    for name, (one, three_in, three, five_in, five, pool) in _INCEPTIONS.items():
        p = f"inception_{name}"
        a = net.conv(f"{p}/1x1", x, one, 1, relu=True)
        b = net.conv(f"{p}/3x3_reduce", x, three_in, 1, relu=True)
        b = net.conv(f"{p}/3x3", b, three, 3, 1, 1, relu=True)
        c = net.conv(f"{p}/5x5_reduce", x, five_in, 1, relu=True)
        c = net.conv(f"{p}/5x5", c, five, 5, 1, 2, relu=True)
        d = net.conv(f"{p}/pool_proj", net.pool(f"{p}/pool", x, 3, 1, 1), pool, 1, relu=True)
        x = net.concat(f"{p}/output", a, b, c, d)
        if name in ("3b", "4e"):
            x = net.pool(f"pool{name[0]}/3x3_s2", x, 3, 2)
    x = net.pool("pool5/7x7_s1", x, 7, 1, pool="AVE")
    net.softmax(net.dense("loss3/classifier", x, 1000))


def squeezenet(net: NetBuilder) -> None:
    """SqueezeNet 1.1."""
    x = net.conv("conv1", net.input("data", 1, 3, 227, 227), 64, 3, 2, relu=True)
    x = net.pool("pool1", x, 3, 2)
    for number, width in zip(range(2, 10), (16, 16, 32, 32, 48, 48, 64, 64), strict=True):
        p = f"fire{number}"
        x = net.conv(f"{p}/squeeze1x1", x, width, 1, relu=True)
        a = net.conv(f"{p}/expand1x1", x, 4 * width, 1, relu=True)
        b = net.conv(f"{p}/expand3x3", x, 4 * width, 3, 1, 1, relu=True)
        x = net.concat(f"{p}/concat", a, b)
        if number in (3, 5):
            x = net.pool(f"pool{number}", x, 3, 2)
    x = net.conv("conv10", net.add("drop9", "Dropout", x, in_place=True), 1000, 1, relu=True)
    net.softmax(net.pool("pool10", x, 0, pool="AVE"))


_MOBILENET = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip


def _depthwise(net: NetBuilder, name: str, x: str, stride: int) -> str:
    channels = net.shapes[x][1]
    return net.conv_norm(name, x, channels, 3, stride, 1, group=channels)


def mobilenet_v1(net: NetBuilder) -> None:
    """MobileNet of full width."""
    x = net.conv_norm("conv1", net.input("data", 1, 3, 224, 224), 32, 3, 2, 1)
    for number, (channels, stride) in enumerate(_MOBILENET, 2):
        x = _depthwise(net, f"conv{number}/dw", x, stride)
        x = net.conv_norm(f"conv{number}/sep", x, channels, 1)
    net.softmax(net.conv("fc7", net.pool("pool6", x, 0, pool="AVE"), 1000, 1))


def mobilenet_v2(net: NetBuilder) -> None:
    """MobileNet v2 of full width."""
    x = net.conv_norm("conv1", net.input("data", 1, 3, 224, 224), 32, 3, 2, 1)
    settings = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    )  # fmt: skip
    for stage, (factor, channels, count, first) in enumerate(settings, 2):
        for block in range(1, count + 1):
            p, before = f"conv{stage}_{block}", x
            x = net.conv_norm(f"{p}/expand", x, net.shapes[x][1] * factor, 1)
            x = _depthwise(net, f"{p}/dwise", x, first if block == 1 else 1)
            x = net.conv_norm(f"{p}/linear", x, channels, 1, relu=False, gain=0.7)
            if block > 1:
                x = net.sum(f"block_{p}", before, x)
    x = net.pool("pool6", net.conv_norm("conv6_4", x, 1280, 1), 0, pool="AVE")
    net.softmax(net.conv("fc7", x, 1000, 1))


def _bottleneck(
    net: NetBuilder, name: str, x: str, width: int, stride: int, shortcut: bool, squeeze: bool
) -> str:
    """A residual block of three convolutions, the stride in the first one."""
    side = x
    if shortcut:
        side = net.conv_norm(f"res{name}_branch1", x, 4 * width, 1, stride, relu=False, gain=0.7)
    y = net.conv_norm(f"res{name}_branch2a", x, width, 1, stride)
    y = net.conv_norm(f"res{name}_branch2b", y, width, 3, 1, 1)
    y = net.conv_norm(f"res{name}_branch2c", y, 4 * width, 1, relu=False, gain=0.3)
    if not squeeze:
        return net.sum(f"res{name}", side, y, relu=True)
    z = net.pool(f"res{name}_global_pool", y, 0, pool="AVE")
    z = net.conv(f"res{name}_1x1_down", z, width // 4, 1, relu=True)
    z = net.conv(f"res{name}_1x1_up", z, 4 * width, 1)
    z = net.add(f"res{name}_prob", "Sigmoid", z, in_place=True)
    if not net.plain:
        return net.relu(net.add(f"res{name}", "Axpy", z, y, side))
    flat = net.add(f"res{name}_flat", "Flatten", z)
    scaled = net.add(f"res{name}_scaled", "Scale", y, flat, scale_param={"axis": 0})
    return net.sum(f"res{name}", scaled, side, relu=True)


def _resnet(net: NetBuilder, depths: Sequence[int], squeeze: bool = False) -> None:
    x = net.conv_norm("conv1", net.input("data", 1, 3, 224, 224), 64, 7, 2, 3)
    x = net.pool("pool1", x, 3, 2)
    for stage, depth in enumerate(depths):
        for block in range(depth):
            name = f"{stage + 2}{'a' if block == 0 else f'b{block}'}"
            stride = 2 if block == 0 and stage else 1
            x = _bottleneck(net, name, x, 64 << stage, stride, block == 0, squeeze)
    net.softmax(net.dense("fc1000", net.pool("pool5", x, 7, 1, pool="AVE"), 1000))


def resnet50(net: NetBuilder) -> None:
    """ResNet with 50 layers."""
    _resnet(net, (3, 4, 6, 3))


def resnet101(net: NetBuilder) -> None:
    """ResNet with 101 layers."""
    _resnet(net, (3, 4, 23, 3))


def resnet152(net: NetBuilder) -> None:
    """ResNet with 152 layers."""
    _resnet(net, (3, 8, 36, 3))


def se_resnet50(net: NetBuilder) -> None:
    """ResNet with 50 layers, whose channels are weighted."""
    _resnet(net, (3, 4, 6, 3), squeeze=True)


def inception_resnet_v2(net: NetBuilder) -> None:
    """Inception-ResNet v2."""
    cn = net.conv_norm
    x = cn("conv1_3x3_s2", net.input("data", 1, 3, 299, 299), 32, 3, 2)
    x = cn("conv3_3x3_s1", cn("conv2_3x3_s1", x, 32, 3), 64, 3, 1, 1)
    x = cn("conv4_3x3_reduce", net.pool("pool1_3x3_s2", x, 3, 2), 80, 1)
    x = net.pool("pool2_3x3_s2", cn("conv4_3x3", x, 192, 3), 3, 2)
    p = "inception_resnet_v2_a0"
    a = cn(f"{p}_1x1", x, 96, 1)
    b = cn(f"{p}_5x5", cn(f"{p}_5x5_reduce", x, 48, 1), 64, 5, 1, 2)
    c = cn(f"{p}_3x3_2", cn(f"{p}_3x3_reduce", x, 64, 1), 96, 3, 1, 1)
    c = cn(f"{p}_3x3_3", c, 96, 3, 1, 1)
    d = cn(f"{p}_pool_proj", net.pool(f"{p}_pool", x, 3, 1, 1, pool="AVE"), 64, 1)
    x = net.concat(f"{p}_concat", a, b, c, d)
    for number in range(1, 11):
        p = f"inception_resnet_v2_a{number}"
        a = cn(f"{p}_1x1", x, 32, 1)
        b = cn(f"{p}_3x3", cn(f"{p}_3x3_reduce", x, 32, 1), 32, 3, 1, 1)
        c = cn(
            f"{p}_3x3_3", cn(f"{p}_3x3_2", cn(f"{p}_3x3_2r", x, 32, 1), 48, 3, 1, 1), 64, 3, 1, 1
        )
        x = _added(net, p, x, net.concat(f"{p}_concat", a, b, c), 0.17)
    p = "reduction_a"
    a = cn(f"{p}_3x3", x, 384, 3, 2)
    b = cn(f"{p}_3x3_3", cn(f"{p}_3x3_2", cn(f"{p}_3x3_2r", x, 256, 1), 256, 3, 1, 1), 384, 3, 2)
    x = net.concat(f"{p}_concat", a, b, net.pool(f"{p}_pool", x, 3, 2))
    for number in range(1, 21):
        p = f"inception_resnet_v2_b{number}"
        a = cn(f"{p}_1x1", x, 192, 1)
        b = cn(f"{p}_1x7", cn(f"{p}_1x7_reduce", x, 128, 1), 160, (1, 7), 1, (0, 3))
        b = cn(f"{p}_7x1", b, 192, (7, 1), 1, (3, 0))
        x = _added(net, p, x, net.concat(f"{p}_concat", a, b), 0.1)
    p = "reduction_b"
    a = cn(f"{p}_3x3", cn(f"{p}_3x3_reduce", x, 256, 1), 384, 3, 2)
    b = cn(f"{p}_3x3_2", cn(f"{p}_3x3_2r", x, 256, 1), 288, 3, 2)
    c = cn(f"{p}_3x3_4", cn(f"{p}_3x3_3", cn(f"{p}_3x3_3r", x, 256, 1), 288, 3, 1, 1), 320, 3, 2)
    x = net.concat(f"{p}_concat", a, b, c, net.pool(f"{p}_pool", x, 3, 2))
    for number in range(1, 11):
        p = f"inception_resnet_v2_c{number}"
        a = cn(f"{p}_1x1", x, 192, 1)
        b = cn(f"{p}_1x3", cn(f"{p}_1x3_reduce", x, 192, 1), 224, (1, 3), 1, (0, 1))
        b = cn(f"{p}_3x1", b, 256, (3, 1), 1, (1, 0))
        factor = 0.2 if number < 10 else 1.0
        x = _added(net, p, x, net.concat(f"{p}_concat", a, b), factor, relu=number < 10)
    x = net.pool("pool_8x8_s1", cn("conv6_1x1", x, 1536, 1), 0, pool="AVE")
    net.softmax(net.dense("classifier", x, 1000))


def _added(net: NetBuilder, name: str, x: str, y: str, factor: float, relu: bool = True) -> str:
    y = net.conv(f"{name}_up", y, net.shapes[x][1], 1, gain=0.7)
    return net.sum(f"{name}_residual_eltwise", x, y, relu=relu, coeff=(1.0, factor))


def densenet121(net: NetBuilder) -> None:
    """DenseNet with 121 layers: normalization before each convolution."""

    def norm_conv(name: str, x: str, outputs: int, kernel: int, pad: int = 0) -> str:
        y = net.norm(x, name=name, in_place=False)
        return net.conv(name, y, outputs, kernel, 1, pad, bias=False)

    x = net.conv_norm("conv1", net.input("data", 1, 3, 224, 224), 64, 7, 2, 3)
    x = net.pool("pool1", x, 3, 2, 1)
    for stage, depth in enumerate((6, 12, 24, 16), 2):
        for block in range(1, depth + 1):
            p = f"conv{stage}_{block}"
            y = norm_conv(f"{p}/x2", norm_conv(f"{p}/x1", x, 128, 1), 32, 3, 1)
            x = net.concat(f"concat_{stage}_{block}", x, y)
        if stage < 5:
            x = norm_conv(f"conv{stage}_blk", x, net.shapes[x][1] // 2, 1)
            x = net.pool(f"pool{stage}", x, 2, 2, pool="AVE")
    x = net.norm(x, name="conv5_blk", in_place=False)
    net.softmax(net.conv("fc6", net.pool("pool5", x, 0, pool="AVE"), 1000, 1))


def nsfw(net: NetBuilder) -> None:
    """The thin ResNet-50 of a classifier of images in two classes: half as wide."""
    x = net.conv_norm("conv_1", net.input("data", 1, 3, 224, 224), 64, 7, 2, 3)
    x = net.pool("pool1", x, 3, 2)
    for stage, depth in enumerate((3, 4, 6, 3)):
        for block in range(depth):
            p, width, side = f"conv_stage{stage}_block{block}", 32 << stage, x
            stride = 2 if block == 0 and stage else 1
            if block == 0:
                side = net.conv_norm(f"{p}_proj", x, 4 * width, 1, stride, relu=False, gain=0.7)
            y = net.conv_norm(f"{p}_branch2a", x, width, 1, stride)
            y = net.conv_norm(f"{p}_branch2b", y, width, 3, 1, 1)
            y = net.conv_norm(f"{p}_branch2c", y, 4 * width, 1, relu=False, gain=0.3)
            x = net.sum(f"eltwise_stage{stage}_block{block}", side, y, relu=True)
    net.softmax(net.dense("fc_nsfw", net.pool("pool", x, 7, 1, pool="AVE"), 2))


CLASSIFIERS: dict[str, Callable[[NetBuilder], None]] = {
    "alexnet": alexnet,
    "caffenet": caffenet,
    "densenet121": densenet121,
    "googlenet": googlenet,
    "inception_resnet_v2": inception_resnet_v2,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "nsfw": nsfw,
    "resnet50": resnet50,
    "resnet101": resnet101,
    "resnet152": resnet152,
    "se_resnet50": se_resnet50,
    "squeezenet": squeezenet,
    "vgg16": vgg16,
    "vgg19": vgg19,
}
