#!/usr/bin/env python3
"""Usage: evaluate.py MODEL.onnx IMAGES OUTPUT

Has ONNX's own checker look at the model, with inference of all shapes, then evaluates it with PyTorch, operator by operator as the
specification says, and with onnxruntime where that is installed. IMAGES: float32, of as many samples as there are. OUTPUT: the logits, float32.
"""
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.shape_inference
import torch
import torch.nn.functional as F

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def padded(x, pads, value):
    top, left, bottom, right = pads
    return F.pad(x, (left, right, top, bottom), value=value)


def average_pool(x, a):
    ones = torch.ones_like(x[:1, :1])
    k = a["kernel_shape"]
    pads = a.get("pads", [0] * 4)
    mean = F.avg_pool2d(padded(x, pads, 0.0), k, a["strides"])
    return mean / F.avg_pool2d(padded(ones, pads, 0.0), k, a["strides"])  # count_include_pad is 0


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "Sum": lambda a, *x: sum(x),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]),
    "Identity": lambda a, x: x,
    "Relu": lambda a, x: F.relu(x),
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Tanh": lambda a, x: torch.tanh(x),
    "Flatten": lambda a, x: x.flatten(a["axis"]),
    "Reshape": lambda a, x, shape: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape.tolist())]),
    "MatMul": lambda a, x, y: x @ y,
    "Gemm": lambda a, x, w, b: x @ (w.T if a["transB"] else w) + b,
    "Conv": lambda a, x, w, b=None: F.conv2d(padded(x, a["pads"], 0.0), w, b, a["strides"], 0, 1, a["group"]),
    "MaxPool": lambda a, x: F.max_pool2d(padded(x, a["pads"], -float("inf")), a["kernel_shape"], a["strides"]),
    "AveragePool": lambda a, x: average_pool(x, a),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "LRN": lambda a, x: F.local_response_norm(x, a["size"], a["alpha"], a["beta"], a["bias"]),
    "BatchNormalization": lambda a, x, w, b, mean, var: F.batch_norm(x, mean, var, w, b, eps=a["epsilon"]),
}


def main(path, images, output):
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    shapes = {value.name: value.type.tensor_type.shape.dim for value in inferred.value_info}
    graph = model.graph
    values = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer}
    shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim][1:]
    values[graph.input[0].name] = torch.from_numpy(np.fromfile(images, np.float32).reshape([-1, *shape]))
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        result = OPERATORS[node.op_type](attributes, *[values[name] for name in node.input])
        known = shapes.get(node.output[0])
        if known is not None and [d.dim_value for d in known][1:] != list(result.shape)[1:]:
            sys.exit(f"{node.name}: {list(result.shape)}, and ONNX infers {[d.dim_value for d in known]}")
        values[node.output[0]] = result
    logits = values[graph.output[0].name]
    if [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim][1:] != list(logits.shape)[1:]:
        sys.exit(f"the output has shape {list(logits.shape)}")
    if onnxruntime is not None:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        other = torch.from_numpy(session.run(None, {graph.input[0].name: values[graph.input[0].name].numpy()})[0])
        if (other - logits).abs().max() > 1e-4 * logits.abs().max():
            sys.exit("onnxruntime gives other outputs")
    logits.numpy().astype(np.float32).tofile(output)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main(*sys.argv[1:])
