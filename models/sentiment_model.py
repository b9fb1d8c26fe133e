"""What training and export of the sentiment classifier share: texts, the model, figures.

The model is Hugging Face's BertForSequenceClassification with three labels. A text is positive if
the mean of its ratings is above 0.5, negative below -0.5, neutral between.
"""

import collections
import os

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

from bert import Body, Node, batches, padded
from weights import read_json

LABELS = ["negative", "neutral", "positive"]
MAX_PIECES = 512

Text = collections.namedtuple("Text", "rating source text")


def read_texts(path):
    """The texts of a file of `rating TAB source TAB text` lines."""
    with open(path, encoding="utf-8") as lines:
        rows = (line.rstrip("\n").split("\t", 2) for line in lines)
        return [Text(float(rating), source, text) for rating, source, text in rows]


def label_of(rating):
    return 2 if rating > 0.5 else 0 if rating < -0.5 else 1


def soft_labels(ratings, width):
    """[texts, 3]: how likely each label is if the mean rating is only known to about `width`."""
    positive = torch.sigmoid((ratings - 0.5) / width)
    negative = torch.sigmoid((-0.5 - ratings) / width)
    return torch.stack([negative, 1 - positive - negative, positive], -1)


class Sentiment(Body):
    def __init__(self, config, rating=False):
        super().__init__(config)
        d = config["hidden_size"]
        self.bert.add_module("pooler", Node(dense=nn.Linear(d, d)))
        self.classifier = nn.Linear(d, len(LABELS))
        # Only training has it: the rating itself tells more than the label.
        self.rating = nn.Linear(d, 1) if rating else None

    def pooled(self, ids):
        x = torch.tanh(self.bert.pooler.dense(self.hidden(ids, None)[:, 0]))
        return F.dropout(x, self.p, self.training)

    def forward(self, ids):
        return self.classifier(self.pooled(ids))


def encode(tokenizer, texts):
    """The ids of every text, cut to MAX_PIECES as the library cuts them."""
    tokenizer.enable_truncation(MAX_PIECES)
    ids = [e.ids for e in tokenizer.encode_batch(texts)]
    tokenizer.no_truncation()
    return ids


@torch.no_grad()
def predict(model, ids):
    """Logits, [texts, 3]."""
    model.eval()
    out = torch.zeros(len(ids), len(LABELS))
    for batch in batches([len(row) for row in ids], 2048):
        out[batch] = model(padded([ids[i] for i in batch]))
    return out


def figures(logits, texts):
    """Per cent of labels right, and of texts with |rating| > 0.5 on the right side.

    The side is positive if the positive label is likelier than the negative one, however likely the
    neutral one is.
    """
    labels = torch.tensor([label_of(t.rating) for t in texts])
    right = (logits.argmax(-1) == labels).double().mean().item()
    sides = labels != 1
    same = ((logits[:, 2] > logits[:, 0]) == (labels == 2))[sides].double().mean().item()
    return 100 * right, 100 * same


def load_checkpoint(folder):
    """The model and the tokenizer that training left."""
    model = Sentiment(read_json(os.path.join(folder, "config.json")))
    model.load_state_dict(load_file(os.path.join(folder, "weights.safetensors")))
    return model.eval(), Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
