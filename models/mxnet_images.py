"""Forms of MXNet's operators: pools and samples, boxes, sequences, and those of `mxnet.numpy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.mxnet_forms import RANDOM, Arrays, Form, ints, mx, normal


def pooling() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    settings: list[tuple[str, dict[str, Any]]] = [
        ("", {"kernel": (2, 3)}),
        ("s", {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1)}),
        ("full", {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"}),
        (
            "full_pad",
            {"kernel": (3, 2), "stride": (3, 2), "pad": (1, 1), "pooling_convention": "full"},
        ),
        ("global", {"kernel": (1, 1), "global_pool": True}),
        (
            "excluded",
            {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "count_include_pad": False},
        ),
        (
            "excluded_full",
            {
                "kernel": (3, 3),
                "stride": (2, 2),
                "pad": (1, 1),
                "count_include_pad": False,
                "pooling_convention": "full",
            },
        ),
    ]
    for kind in ("max", "avg", "sum", "lp"):
        for suffix, given in settings:
            more = {"p_value": 2} if kind == "lp" else {}
            forms[f"{kind}_{suffix}"] = lambda F, v, k=kind, g={**given, **more}: F.Pooling(
                v.img, pool_type=k, **g
            )
        if kind != "lp":
            for suffix, given in settings[:5]:
                forms[f"v1_{kind}_{suffix}"] = lambda F, v, k=kind, g=given: F.Pooling_v1(
                    v.img, pool_type=k, **g
                )
    forms["lp3"] = lambda F, v: F.Pooling(F.abs(v.img), kernel=(2, 2), pool_type="lp", p_value=3)
    forms["lp1"] = lambda F, v: F.Pooling(v.img, kernel=(2, 2), pool_type="lp", p_value=1)
    for kind in ("max", "avg"):
        forms[f"{kind}_1d"] = lambda F, v, k=kind: F.Pooling(
            v.seq, kernel=(3,), stride=(2,), pad=(1,), pool_type=k
        )
        forms[f"{kind}_3d"] = lambda F, v, k=kind: F.Pooling(
            v.vol, kernel=(2, 3, 2), stride=(2, 2, 1), pool_type=k, pooling_convention="full"
        )
    for size in (1, (2, 3), (7, 2)):
        forms[f"adaptive_{size}".replace(" ", "").strip(")").replace("(", "").replace(",", "x")] = (
            lambda F, v, s=size: F.contrib.AdaptiveAvgPooling2D(v.img, output_size=s)
        )
    forms["adaptive_default"] = lambda F, v: F.contrib.AdaptiveAvgPooling2D(v.img)
    forms["up"] = lambda F, v: F.UpSampling(v.img, scale=2, sample_type="nearest")
    forms["up_concat"] = lambda F, v: F.UpSampling(
        v.img,
        F.UpSampling(v.img2, scale=2, sample_type="nearest"),
        scale=4,
        sample_type="nearest",
        num_args=2,
    )
    forms["up_sum"] = lambda F, v: F.UpSampling(
        v.img, v.img2, scale=3, sample_type="nearest", num_args=2, multi_input_mode="sum"
    )
    forms["up_bilinear"] = lambda F, v: F.UpSampling(
        v.img,
        F.tile(F.slice(v.wd, begin=(0, 0, 0, 0), end=(4, 1, 2, 2)), reps=(1, 1, 2, 2)),
        scale=2,
        sample_type="bilinear",
        num_filter=4,
        num_args=2,
    )
    resizes: list[dict[str, Any]] = [
        {"height": 10, "width": 9},
        {"height": 3, "width": 4},
        {"height": 10, "width": 9, "align_corners": False},
        {"scale_height": 2.0, "scale_width": 1.5},
        {"scale_height": 2.0, "scale_width": 2.0, "mode": "odd_scale"},
        {"mode": "to_even_down"},
        {"mode": "to_odd_up"},
        {"mode": "to_even_up"},
        {"mode": "to_odd_down"},
    ]
    for number, given in enumerate(resizes):
        forms[f"resize{number}"] = lambda F, v, g=given: F.contrib.BilinearResize2D(v.img, **g)
    forms["resize_like"] = lambda F, v: F.contrib.BilinearResize2D(v.img, v.big, mode="like")
    forms["grid_affine"] = lambda F, v: F.GridGenerator(
        v.c6.reshape((1, 6)), transform_type="affine", target_shape=(4, 5)
    )
    forms["grid_warp"] = lambda F, v: F.GridGenerator(
        F.slice_axis(v.img, axis=1, begin=0, end=2), transform_type="warp"
    )
    forms["sampler"] = lambda F, v: F.BilinearSampler(
        v.img, F.slice_axis(v.img2, axis=1, begin=0, end=2)
    )
    forms["transformer"] = lambda F, v: F.SpatialTransformer(
        F.slice_axis(v.img, axis=0, begin=0, end=1),
        v.c6.reshape((1, 6)) * 0.5,
        target_shape=(5, 4),
        transform_type="affine",
        sampler_type="bilinear",
    )
    for given in (
        {"max_displacement": 2},
        {"max_displacement": 2, "stride2": 2, "pad_size": 2, "is_multiply": False},
        {"kernel_size": 3, "max_displacement": 1, "pad_size": 2, "stride1": 2},
    ):
        forms[f"correlation{len(given)}"] = lambda F, v, g=given: F.Correlation(v.img, v.img2, **g)
    return forms


def boxes() -> Arrays:
    corners = RANDOM.uniform(0, 0.6, (2, 12, 2)).astype(np.float32)
    sizes = RANDOM.uniform(0.1, 0.5, (2, 12, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + sizes], -1)
    scores = RANDOM.uniform(0, 1, (2, 12, 1)).astype(np.float32)
    labels = ints(0, 3, 2, 12, 1)
    classes = RANDOM.uniform(0, 1, (2, 4, 12)).astype(np.float32)
    rois = np.array(
        [[0, 1, 2, 9, 7], [1, 0, 0, 5, 11], [1, 4, 4, 6, 9], [0, 2, 3, 30, 30]], np.float32
    )
    return {
        "image": normal(2, 8, 6, 5),
        "rows": np.concatenate([labels, scores, boxes], -1),
        "boxes": boxes,
        "others": boxes[::-1, ::2].copy(),
        "classes": classes / classes.sum(1, keepdims=True),
        "deltas": normal(2, 48) * 0.5,
        "moves": normal(2, 12, 4) * 0.3,
        "anchors": boxes[:1],
        "rois": rois,
        "cls": RANDOM.uniform(0, 1, (2, 12, 4, 5)).astype(np.float32),
        "cls1": RANDOM.uniform(0, 1, (1, 12, 4, 5)).astype(np.float32),
        "reg": normal(2, 24, 4, 5) * 0.3,
        "reg1": normal(1, 24, 4, 5) * 0.3,
        "info": np.array([[60, 75, 1.0], [64, 80, 1.5]], np.float32),
        "info1": np.array([[60, 75, 1.0]], np.float32),
    }


def detection() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    priors: list[dict[str, Any]] = [
        {},
        {"sizes": (0.3, 0.5), "ratios": (1, 2, 0.5)},
        {"sizes": (0.5,), "ratios": (2, 1), "clip": True},
        {"steps": (0.1, 0.2), "offsets": (0.3, 0.6)},
    ]
    for number, given in enumerate(priors):
        forms[f"prior{number}"] = lambda F, v, g=given: F.contrib.MultiBoxPrior(v.image, **g)
    detections: list[dict[str, Any]] = [
        {},
        {"threshold": 0.3},
        {"nms_threshold": 0.2, "force_suppress": True},
        {"nms_topk": 5},
        {"clip": False, "variances": (0.2, 0.2, 0.3, 0.3)},
        {"nms_threshold": 0.0},
    ]
    for number, given in enumerate(detections):
        forms[f"detection{number}"] = lambda F, v, g=given: F.contrib.MultiBoxDetection(
            v.classes, v.deltas, v.anchors, **g
        )
    suppressions: list[dict[str, Any]] = [
        {},
        {"overlap_thresh": 0.2, "id_index": 0},
        {"topk": 4, "valid_thresh": 0.3},
        {"id_index": 0, "force_suppress": True, "overlap_thresh": 0.1},
        {"id_index": 0, "background_id": 0},
        {"in_format": "center", "out_format": "corner"},
        {"out_format": "center", "overlap_thresh": 0.3},
        {"topk": 0},
        {"valid_thresh": 2.0},
    ]
    for number, given in enumerate(suppressions):
        forms[f"nms{number}"] = lambda F, v, g=given: F.contrib.box_nms(v.rows, **g)
    for kind in ("corner", "center"):
        forms[f"iou_{kind}"] = lambda F, v, k=kind: F.contrib.box_iou(v.boxes, v.others, format=k)
        forms[f"decode_{kind}"] = lambda F, v, k=kind: F.contrib.box_decode(
            v.moves, v.anchors, 0.1, 0.2, 0.3, 0.4, format=k
        )
    forms["decode_clip"] = lambda F, v: F.contrib.box_decode(v.moves, v.anchors, clip=0.2)
    for number, (scale, size) in enumerate(((1.0, (3, 2)), (0.4, (2, 2)))):
        forms[f"roi_pool{number}"] = lambda F, v, s=scale, n=size: F.ROIPooling(
            v.image, v.rois, spatial_scale=s, pooled_size=n
        )
        for ratio in (-1, 2):
            for aligned in (False, True):
                forms[f"roi_align{number}{ratio + 1}{int(aligned)}"] = (
                    lambda F, v, s=scale, n=size, r=ratio, a=aligned: F.contrib.ROIAlign(
                        v.image, v.rois, spatial_scale=s, pooled_size=n, sample_ratio=r, aligned=a
                    )
                )
    forms["psroi"] = lambda F, v: F.contrib.PSROIPooling(
        v.image, v.rois, spatial_scale=0.5, output_dim=2, pooled_size=2, group_size=2
    )
    proposals: list[dict[str, Any]] = [
        {"rpn_post_nms_top_n": 10, "rpn_min_size": 4},
        {"rpn_pre_nms_top_n": 20, "rpn_post_nms_top_n": 30, "threshold": 0.5},
        {"rpn_post_nms_top_n": 6, "rpn_min_size": 30},
    ]
    for number, given in enumerate(proposals):
        given = {"scales": (2, 4), "feature_stride": 16, **given}
        forms[f"proposal{number}"] = lambda F, v, g=given: F.contrib.Proposal(
            v.cls1, v.reg1, v.info1, **g
        )
        forms[f"multi{number}"] = lambda F, v, g=given: F.contrib.MultiProposal(
            v.cls, v.reg, v.info, **g
        )
    return forms


def sequence() -> Arrays:
    found: Arrays = {"data": normal(4, 2, 3), "lengths": np.array([2, 4], np.float32)}
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn", 1)):
        for layers, directions in ((1, 1), (2, 2)):
            size = 0
            for layer in range(layers):
                width = 3 if layer == 0 else 5 * directions
                size += directions * gates * 5 * (width + 5 + 2)
            found[f"{name}{layers}"] = normal(size) * 0.5
    for layers in (1, 4):
        found[f"h{layers}"], found[f"c{layers}"] = normal(layers, 2, 5), normal(layers, 2, 5)
    found["w"] = normal(5, 3)
    found["r"] = normal(5, 5) * 0.3
    found["start"] = normal(2, 5)
    found["x"] = normal(2, 3)
    found["one"] = np.array([1], np.float32)
    return found


def recurrent() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        for layers, both in ((1, False), (2, True)):
            for states in (False, True):
                given = {"mode": mode, "num_layers": layers, "bidirectional": both, "state_size": 5}

                def form(F: Any, v: Any, g: Any = given, s: bool = states) -> Any:
                    count = 4 if g["bidirectional"] else 1
                    name = g["mode"].partition("_")[0]
                    inputs = [
                        v.data,
                        getattr(v, f"{name}{g['num_layers']}"),
                        getattr(v, f"h{count}"),
                    ]
                    inputs += [getattr(v, f"c{count}")] if name == "lstm" else []
                    return F.RNN(*inputs, state_outputs=s, **g)

                forms[f"{mode}{layers}{int(states)}"] = form
    forms["zero_state"] = lambda F, v: F.RNN(
        v.data,
        v.lstm1,
        F.zeros((1, 0, 5)),
        F.zeros((1, 0, 5)),
        mode="lstm",
        num_layers=1,
        state_size=5,
    )

    def each(F: Any, v: Any) -> Any:
        def step(x: Any, states: Any) -> Any:
            h = F.Activation(
                F.FullyConnected(x, v.w, num_hidden=5, no_bias=True)
                + F.FullyConnected(states[0], v.r, num_hidden=5, no_bias=True),
                act_type="tanh",
            )
            return [h, h * 2], [h]

        outputs, states = F.contrib.foreach(step, v.data, [v.start])
        return mx.sym.Group([*outputs, *states])

    def loop(F: Any, v: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return [x + i.reshape((1, 1)).broadcast_to((2, 3))], [i + 1, x * 2]

        def goes_on(i: Any, x: Any) -> Any:
            del x
            return F.broadcast_lesser(i, v.one * 3)

        outputs, states = F.contrib.while_loop(goes_on, step, [v.one, v.x], max_iterations=5)
        rows = F.slice_axis(outputs[0], axis=0, begin=0, end=2)
        return mx.sym.Group([rows, *states])

    def branch(F: Any, v: Any, flip: bool) -> Any:
        number = v.one * (-1 if flip else 1)
        return F.contrib.cond(number > 0, lambda: v.x * 2, lambda: v.x - 1)

    forms["foreach"] = each
    forms["while"] = loop
    forms["cond"] = lambda F, v: branch(F, v, False)
    forms["cond_else"] = lambda F, v: branch(F, v, True)
    return forms


def numpy_forms() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for name in (
        "absolute arccos arcsin arctan arcsinh arctanh cbrt ceil cos cosh degrees exp expm1 fix "
        "floor log1p negative radians reciprocal rint sign sin sinh square tan tanh trunc "
        "logical_not"
    ).split():
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.u)
        if name not in ("arctanh", "arccos", "arcsin"):
            forms[f"int_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j)
    for name in ("log", "log10", "log2", "sqrt"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.p)
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.odd)
    for name in ("around", "round"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.half)
    forms["around2"] = lambda F, v: F.np.around(v.x, 2)
    binary = (
        "add subtract multiply true_divide mod power maximum minimum hypot arctan2 copysign ldexp "
        "equal not_equal greater greater_equal less less_equal"
    ).split()
    for name in binary:
        forms[f"b_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.p, v.b)
        if name not in ("copysign", "hypot", "arctan2", "ldexp"):
            forms[f"mixed_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, v.p)
        forms[f"s_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.p, 2.5)
        forms[f"r_{name}"] = lambda F, v, n=name: getattr(F.np, n)(2.5, v.p)
        if name not in ("copysign", "hypot", "arctan2", "ldexp", "power"):
            forms[f"i_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, 2)
            forms[f"f_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, 1.5)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.i, v.j)
    forms["bitwise_not"] = lambda F, v: F.np.bitwise_not(v.i)
    for suffix, given in (("", {}), ("1", {"axis": 1}), ("k", {"axis": (0, 2), "keepdims": True})):
        for name in ("sum", "mean", "prod", "max", "min", "std", "var"):
            forms[f"{name}{suffix}"] = lambda F, v, n=name, g=given: getattr(F.np, n)(v.x, **g)
        for name in ("sum", "mean", "max"):
            forms[f"int_{name}{suffix}"] = lambda F, v, n=name, g=given: getattr(F.np, n)(v.j, **g)
    forms["var_ddof"] = lambda F, v: F.np.var(v.x, axis=1, ddof=1)
    forms["average"] = lambda F, v: F.np.average(v.x, axis=2, weights=v.c4)
    forms["any"] = lambda F, v: F.np.any(v.mask, axis=1)
    forms["all"] = lambda F, v: F.np.all(v.mask)
    for name in ("argmax", "argmin"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.x)
        forms[f"{name}1"] = lambda F, v, n=name: getattr(F.np, n)(v.x, axis=1)
    forms["cumsum"] = lambda F, v: F.np.cumsum(v.x, axis=1)
    forms["cumsum_int"] = lambda F, v: F.np.cumsum(v.j)
    forms["sort"] = lambda F, v: F.np.sort(v.x, axis=1)
    forms["argsort"] = lambda F, v: F.np.argsort(v.x)
    forms["reshape"] = lambda F, v: F.np.reshape(v.x, (4, -1))
    for number, shape in enumerate(
        ((-2, -1), (-5, 4), (-2, -6, 3, 1, -4), (-4,), (6, -2), (-1, 2))
    ):
        forms[f"npx_reshape{number}"] = lambda F, v, s=shape: F.npx.reshape(v.x, s)
    forms["npx_reshape_drop"] = lambda F, v: F.npx.reshape(v.one, (-3, -2, -3, -2))
    forms["npx_reshape_back"] = lambda F, v: F.npx.reshape(v.x, (-1, -2), reverse=True)
    forms["squeeze"] = lambda F, v: F.np.squeeze(v.one)
    forms["transpose"] = lambda F, v: F.np.transpose(v.x, (1, 2, 0))
    forms["moveaxis"] = lambda F, v: F.np.moveaxis(v.x, 0, 2)
    forms["swapaxes"] = lambda F, v: F.np.swapaxes(v.x, 0, 1)
    forms["rot90"] = lambda F, v: F.np.rot90(v.x)
    forms["rot90_3"] = lambda F, v: F.np.rot90(v.x, k=3, axes=(1, 2))
    forms["flip"] = lambda F, v: F.np.flip(v.x, axis=1)
    forms["roll"] = lambda F, v: F.np.roll(v.x, 2, axis=2)
    forms["roll_all"] = lambda F, v: F.np.roll(v.x, 3)
    forms["expand"] = lambda F, v: F.np.expand_dims(v.x, 1)
    forms["concatenate"] = lambda F, v: F.np.concatenate([v.x, v.y], axis=1)
    forms["stack"] = lambda F, v: F.np.stack([v.x, v.y], axis=1)
    for name in ("vstack", "hstack", "dstack"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)([v.x, v.y])
    forms["column_stack"] = lambda F, v: F.np.column_stack([v.v, v.v])
    forms["split"] = lambda F, v: mx.sym.Group(F.np.split(v.x, [1, 3], axis=2))
    forms["hsplit"] = lambda F, v: mx.sym.Group(F.np.hsplit(v.x, 3))
    forms["tile"] = lambda F, v: F.np.tile(v.x, (2, 1, 1))
    forms["repeat"] = lambda F, v: F.np.repeat(v.x, 2, axis=1)
    forms["broadcast_to"] = lambda F, v: F.np.broadcast_to(v.b, (2, 3, 4))
    for mode in ("constant", "edge", "reflect"):
        forms[f"pad_{mode}"] = lambda F, v, m=mode: F.np.pad(v.x, ((0, 0), (1, 2), (2, 1)), mode=m)
    for name in ("diag", "trace"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.m)
    forms["diagonal"] = lambda F, v: F.np.diagonal(v.x, 1, 1, 2)
    forms["diagflat"] = lambda F, v: F.np.diagflat(v.v)
    forms["tril"] = lambda F, v: F.np.tril(v.x, 1)
    forms["dot"] = lambda F, v: F.np.dot(v.m, F.np.transpose(v.m))
    forms["dot3"] = lambda F, v: F.np.dot(v.m, F.np.transpose(v.x, (0, 2, 1)))
    forms["dot_v"] = lambda F, v: F.np.dot(v.v, v.v)
    forms["matmul"] = lambda F, v: F.np.matmul(v.x, F.np.transpose(v.y, (0, 2, 1)))
    forms["einsum"] = lambda F, v: F.np.einsum("bij,bkj->bik", v.x, v.y)
    forms["tensordot"] = lambda F, v: F.np.tensordot(v.x, v.y, axes=([1, 2], [1, 2]))
    forms["tensordot_n"] = lambda F, v: F.np.tensordot(v.x, F.np.transpose(v.m), axes=1)
    forms["where"] = lambda F, v: F.np.where(v.mask, v.x, v.b)
    forms["where_s"] = lambda F, v: F.np.where(v.mask, v.x, 2.0)
    forms["clip"] = lambda F, v: F.np.clip(v.x, -0.5, 0.5)
    forms["take"] = lambda F, v: F.np.take(v.x, v.i, axis=2, mode="wrap")
    forms["arange"] = lambda F, v: F.np.arange(2, 8, 1.5)
    forms["linspace"] = lambda F, v: F.np.linspace(0, 1, 5)
    forms["linspace_open"] = lambda F, v: F.np.linspace(0, 1, 5, endpoint=False)
    forms["logspace"] = lambda F, v: F.np.logspace(0, 1, 4)
    forms["eye"] = lambda F, v: F.np.eye(3, 4, 1)
    forms["identity"] = lambda F, v: F.np.identity(3)
    forms["zeros"] = lambda F, v: F.np.zeros((2, 3))
    forms["ones"] = lambda F, v: F.np.ones((2, 3), dtype="int32")
    forms["full"] = lambda F, v: F.np.full((2, 3), 1.5)
    forms["full_like"] = lambda F, v: F.np.full_like(v.x, 3)
    forms["indices"] = lambda F, v: F.np.indices((2, 3))
    for name in ("hanning", "hamming", "blackman"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(6)
    forms["norm"] = lambda F, v: F.np.linalg.norm(v.x)
    forms["norm1"] = lambda F, v: F.np.linalg.norm(v.x, axis=1, ord=1)
    forms["norm2"] = lambda F, v: F.np.linalg.norm(v.x, axis=2, keepdims=True)
    forms["relu"] = lambda F, v: F.npx.relu(v.x)
    forms["sigmoid"] = lambda F, v: F.npx.sigmoid(v.x)
    forms["softmax"] = lambda F, v: F.npx.softmax(v.x, axis=1)
    forms["pick"] = lambda F, v: F.npx.pick(v.x, v.k)
    forms["topk"] = lambda F, v: F.npx.topk(v.x, k=2)
    forms["one_hot"] = lambda F, v: F.npx.one_hot(v.k, 4)
    forms["layer_norm"] = lambda F, v: F.npx.layer_norm(v.x, v.c4, v.c4b)
    forms["fc"] = lambda F, v: F.npx.fully_connected(v.x, v.fc2, v.c5, num_hidden=5, flatten=False)
    return forms
