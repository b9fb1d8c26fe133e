"""Writes MiniLM as the ONNX graphs that ONNX Runtime and others run.

    export_onnx.py FOLDER OUT       OUT/plain.onnx, OUT/fused.onnx and OUT/int8.onnx

FOLDER has config.json and model.safetensors of a BERT encoder. The graph is exported by PyTorch's
TorchScript exporter (opset 17, any batch and length), fused by onnxruntime's own optimizer, and
quantised dynamically (weights in int8 by channel) by onnxruntime's own tool.
"""

import json
import pathlib
import sys

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from safetensors.torch import load_file


class Layer(torch.nn.Module):
    def __init__(self, width, heads, inner, eps, sdpa=False):
        super().__init__()
        self.heads, self.sdpa = heads, sdpa
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in "qkvo")
        self.up, self.down = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)
        self.norm1, self.norm2 = (torch.nn.LayerNorm(width, eps=eps) for _ in "12")

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        if self.sdpa:
            context = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) / (q.shape[-1] ** 0.5)
            context = torch.matmul(torch.softmax(scores + mask, dim=-1), v)
        context = context.permute(0, 2, 1, 3).contiguous().view(x.shape)
        x = self.norm1(self.out(context) + x)
        return self.norm2(self.down(torch.nn.functional.gelu(self.up(x))) + x)


class Bert(torch.nn.Module):
    def __init__(self, config, sdpa=False):
        super().__init__()
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.words = torch.nn.Embedding(config["vocab_size"], width)
        self.positions = torch.nn.Embedding(config["max_position_embeddings"], width)
        self.types = torch.nn.Embedding(config["type_vocab_size"], width)
        self.norm = torch.nn.LayerNorm(width, eps=eps)
        self.layers = torch.nn.ModuleList(
            Layer(width, config["num_attention_heads"], config["intermediate_size"], eps, sdpa)
            for _ in range(config["num_hidden_layers"]))

    def forward(self, input_ids, attention_mask, token_type_ids):
        positions = torch.arange(512).unsqueeze(0)[:, :input_ids.shape[1]]
        x = self.words(input_ids) + self.types(token_type_ids) + self.positions(positions)
        x = self.norm(x)
        if attention_mask is None:  # of PyTorch alone: nothing is padded
            mask = None
        else:
            mask = attention_mask.unsqueeze(1).unsqueeze(2).to(x.dtype)
            mask = (1.0 - mask) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return x


NAMES = [  # ours, the checkpoint's
    ("words", "embeddings.word_embeddings"), ("positions", "embeddings.position_embeddings"),
    ("types", "embeddings.token_type_embeddings"), ("norm", "embeddings.LayerNorm"),
    ("query", "attention.self.query"), ("key", "attention.self.key"),
    ("value", "attention.self.value"), ("out", "attention.output.dense"),
    ("norm1", "attention.output.LayerNorm"), ("up", "intermediate.dense"),
    ("down", "output.dense"), ("norm2", "output.LayerNorm")]


def load(folder, sdpa=False):
    config = json.loads((folder / "config.json").read_text())
    model = Bert(config, sdpa)
    stored = {name.removeprefix("bert."): tensor.float()
              for name, tensor in load_file(folder / "model.safetensors").items()}
    names = dict(NAMES)
    state = {}
    for name in model.state_dict():
        *path, module, kind = name.split(".")
        prefix = f"encoder.layer.{path[1]}." if path else ""
        state[name] = stored[f"{prefix}{names[module]}.{kind}"]
    model.load_state_dict(state)
    return config, model.eval()


def export(model, config, out, output="last_hidden_state"):
    out.mkdir(parents=True, exist_ok=True)
    ids = torch.ones(2, 9, dtype=torch.int64)
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(model, (ids, ids, ids), str(out / "plain.onnx"), dynamo=False,
                      opset_version=17, input_names=inputs, output_names=[output],
                      dynamic_axes={name: axes for name in inputs + [output]})
    fused = optimizer.optimize_model(
        str(out / "plain.onnx"), model_type="bert", opt_level=1,
        num_heads=config["num_attention_heads"], hidden_size=config["hidden_size"],
        optimization_options=FusionOptions("bert"))
    print("fused:", {k: v for k, v in fused.get_fused_operator_statistics().items() if v})
    fused.save_model_to_file(str(out / "fused.onnx"))
    quantize_dynamic(str(out / "fused.onnx"), str(out / "int8.onnx"), per_channel=True,
                     weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})


def main():
    config, model = load(pathlib.Path(sys.argv[1]))
    export(model, config, pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
