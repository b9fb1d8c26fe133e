"""Writes a BERT encoder of another size with random weights, for speed alone.

    random_bert.py MINILM OUT       OUT: config.json, model.safetensors and MINILM's tokenizer

The size is BERT-base's: 12 layers of width 768. Weights are normal numbers of the size that BERT
begins its training with, so that nothing overflows and no softmax is degenerate.
"""

import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file


def main():
    minilm, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(minilm / name, out / name)
    config = json.loads((minilm / "config.json").read_text())
    width, inner, layers = 768, 3072, 12
    config.update(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
                  num_attention_heads=12)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    torch.manual_seed(1)
    tensors = {}

    def linear(name, rows, columns):
        tensors[f"{name}.weight"] = torch.randn(rows, columns) * 0.02
        tensors[f"{name}.bias"] = torch.randn(rows) * 0.02

    def norm(name):
        tensors[f"{name}.weight"] = torch.ones(width)
        tensors[f"{name}.bias"] = torch.zeros(width)

    for name, rows in (("word", config["vocab_size"]), ("position", config["max_position_embeddings"]),
                       ("token_type", config["type_vocab_size"])):
        tensors[f"embeddings.{name}_embeddings.weight"] = torch.randn(rows, width) * 0.02
    norm("embeddings.LayerNorm")
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{name}", width, width)
        linear(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", inner, width)
        linear(f"{layer}.output.dense", width, inner)
        norm(f"{layer}.output.LayerNorm")
    linear("pooler.dense", width, width)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
