#!/usr/bin/env python3
"""Trains small encoders of attend's own family on the sentiment task, from random weights.

    python3 train_family.py --data DATA --base BASE --out RUN --score additive
    python3 train_family.py --data DATA --base BASE --out RUN --normalizer relu

They show that the parts of the family learn, not only run: additive scores in place of scaled dot
products, ReLU (and the others) in place of softmax. DATA holds train.tsv and dev.tsv as
train_sentiment.py reads them (from the vaderSentiment repository, MIT), BASE the tokenizer.json of
all-MiniLM-L6-v2 (Apache-2.0), of which only the list of pieces is used. RUN becomes a folder of
`model_type: "attend_encoder"` that attend converts.
"""

import argparse
import os
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from bert import PAD, batches, build_tokenizer, choose_vocab, load_vocab, padded
from sentiment_model import LABELS, MAX_PIECES, encode, figures, label_of, read_texts
from weights import (Mean, begin, learning_rate, stored_bytes, take_step, write_json,
                     write_weights)


def make_config(args, vocab_size):
    return {
        "model_type": "attend_encoder", "input": "tokens", "vocab_size": vocab_size,
        "hidden_size": args.width, "num_hidden_layers": args.layers,
        "num_attention_heads": args.heads, "intermediate_size": 2 * args.width,
        "position": "learned", "max_position_embeddings": MAX_PIECES, "score": args.score,
        **({"score_size": args.width // args.heads} if args.score == "additive" else {}),
        "normalizer": args.normalizer,
        "normalizer_scale": "none" if args.normalizer.startswith("softmax") else "length",
        "norm": "pre", "norm_eps": 1e-6, "activation": "relu", "task": "sequence",
        "pooling": "mean", "id2label": {str(i): label for i, label in enumerate(LABELS)},
    }


def normalised(scores, seen, kind):
    """The weights of the scores [batch, heads, queries, keys]; `seen` tells pads from keys."""
    if kind == "softmax":
        return torch.softmax(scores.masked_fill(~seen, -1e9), -1)
    if kind == "softmax1":
        top = scores.masked_fill(~seen, -1e9).amax(-1, keepdim=True).clamp(min=0)
        raised = torch.exp(scores - top) * seen
        return raised / (raised.sum(-1, keepdim=True) + torch.exp(-top))
    weights = {"relu": F.relu, "relu2": lambda s: F.relu(s).square(), "sigmoid": torch.sigmoid,
               "none": lambda s: s}[kind](scores)
    return weights * seen / seen.sum(-1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, self.config = config["hidden_size"], config
        self.heads, self.width = config["num_attention_heads"], d // config["num_attention_heads"]
        self.v, self.o = nn.Linear(d, d), nn.Linear(d, d)
        if config["score"] == "additive":
            inner = self.heads * config["score_size"]
            self.qa, self.ka = nn.Linear(d, inner), nn.Linear(d, inner, bias=False)
            self.va = nn.Parameter(torch.randn(self.heads, config["score_size"])
                                   * config["score_size"] ** -0.5)
        else:
            self.q, self.k = nn.Linear(d, d), nn.Linear(d, d)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scores(self, x):
        if self.config["score"] == "additive":
            q, k = self.split(self.qa(x)), self.split(self.ka(x))
            return torch.tanh(q[:, :, :, None] + k[:, :, None]).mul(
                self.va[:, None, None]).sum(-1)
        scores = self.split(self.q(x)) @ self.split(self.k(x)).transpose(-1, -2)
        return scores * self.width ** -0.5 if self.config["score"] == "scaled_dot" else scores

    def forward(self, x, seen):
        weights = normalised(self.scores(x), seen, self.config["normalizer"])
        return self.o((weights @ self.split(self.v(x))).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, f = config["hidden_size"], config["intermediate_size"]
        self.attention_norm, self.attention = nn.LayerNorm(d, config["norm_eps"]), Attention(config)
        self.ffn_norm = nn.LayerNorm(d, config["norm_eps"])
        self.ffn = nn.ModuleDict({"up": nn.Linear(d, f), "down": nn.Linear(f, d)})

    def forward(self, x, seen, drop):
        x = x + drop(self.attention(self.attention_norm(x), seen))
        return x + drop(self.ffn["down"](F.relu(self.ffn["up"](self.ffn_norm(x)))))


class Encoder(nn.Module):
    """Its parameters have the names of the format's tensors."""

    def __init__(self, config, dropout):
        super().__init__()
        d = config["hidden_size"]
        self.drop = nn.Dropout(dropout)
        self.embeddings = nn.ModuleDict({
            "tokens": nn.Embedding(config["vocab_size"], d),
            "positions": nn.Embedding(config["max_position_embeddings"], d)})
        for table in self.embeddings.values():
            nn.init.normal_(table.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.final_norm = nn.LayerNorm(d, config["norm_eps"])
        self.head = nn.Linear(d, len(LABELS))

    def forward(self, ids):
        x = self.embeddings["tokens"](ids) + self.embeddings["positions"].weight[:ids.shape[1]]
        x, known = self.drop(x), ids != PAD
        for layer in self.layers:
            x = layer(x, known[:, None, None], self.drop)
        known = known[..., None].to(x.dtype)
        return self.head((self.final_norm(x) * known).sum(1) / known.sum(1))


@torch.no_grad()
def predict(model, ids):
    model.eval()
    out = torch.zeros(len(ids), len(LABELS))
    for batch in batches([len(row) for row in ids], 4096):
        out[batch] = model(padded([ids[i] for i in batch]))
    return out


def train(model, config, tokenizer, texts, dev, args, log):
    """Trains, and leaves the weights of the last step, averaged, in --out."""
    rng = random.Random(args.seed)
    ids, dev_ids = (encode(tokenizer, [t.text for t in part]) for part in (texts, dev))
    labels = torch.tensor([label_of(t.rating) for t in texts])
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01,
                                  fused=True)
    mean, copy = Mean(model, 0.995), Encoder(config, 0.0)
    step, total, start = 0, None, time.time()
    for epoch in range(1, args.epochs + 1):
        plan = batches([len(row) for row in ids], args.batch, rng)
        total = total or len(plan) * args.epochs
        model.train()
        for batch in plan:
            rate = max(learning_rate(step, total, start, args), 1e-3)
            optimizer.param_groups[0]["lr"] = args.lr * rate
            loss = F.cross_entropy(model(padded([ids[i] for i in batch])), labels[batch],
                                   label_smoothing=0.05)
            take_step(loss, optimizer, model.parameters(), 2.0, mean)
            step += 1
        copy.load_state_dict(mean.state())
        found = figures(predict(copy, dev_ids), dev)
        log(f"epoch {epoch} loss {loss.item():.4f} dev labels {found[0]:.2f} sides {found[1]:.2f} "
            f"minutes {(time.time() - start) / 60:.1f}")
    write_weights(os.path.join(args.out, "model.safetensors"), mean.state())
    tokenizer.save(os.path.join(args.out, "tokenizer.json"), pretty=False)
    write_json(os.path.join(args.out, "config.json"), config)


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="folder of train.tsv and dev.tsv")
    p.add_argument("--base", required=True, help="folder of all-MiniLM-L6-v2's tokenizer.json")
    p.add_argument("--out", required=True, help="folder for the model and the log")
    p.add_argument("--score", choices=["scaled_dot", "dot", "additive"], default="scaled_dot")
    p.add_argument("--normalizer", default="softmax",
                   choices=["softmax", "softmax1", "relu", "relu2", "sigmoid", "none"])
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--rows", type=int, default=5000, help="vocabulary")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch", type=int, default=1500, help="pieces per batch, pads included")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--warmup", type=float, default=0.1, help="share of the steps")
    p.add_argument("--dropout", type=float, default=0.2)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    args = parse_args()
    args.minutes = 0
    log = begin(args)
    texts = read_texts(os.path.join(args.data, "train.tsv"))
    dev = read_texts(os.path.join(args.data, "dev.tsv"))
    vocab = choose_vocab(load_vocab(os.path.join(args.base, "tokenizer.json")),
                         [t.text for t in texts], args.rows)
    config = make_config(args, len(vocab))
    model = Encoder(config, args.dropout)
    log(f"score {args.score} normalizer {args.normalizer}: "
        f"{stored_bytes(model.state_dict()) / 1e6:.2f} MB as int8")
    train(model, config, build_tokenizer(vocab), texts, dev, args, log)


if __name__ == "__main__":
    sys.exit(main())
