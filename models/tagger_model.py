"""What training and export of the tagger share: text, the model, tagging, checkpoints.

The model is BERT with a label for every piece of a word (BertForTokenClassification of Hugging
Face, whose names the weights have); a word has the label of its first piece. Its token type ids are
the shapes of words, see word_shape(), so that the uncased vocabulary keeps what case tells.
"""

import collections
import os
import unicodedata

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn

from bert import CLS, SEP, Body, Pieces, batches, padded
from weights import read_json

UPOS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
        "PUNCT", "SCONJ", "SYM", "VERB", "X"]
MAX_PIECES = 512

Sentence = collections.namedtuple("Sentence", "forms upos xpos")


# ---------------------------------------------------------------------------------------------
# Text: sentences, the shape of words, pieces
# ---------------------------------------------------------------------------------------------


def read_sentences(path):
    """Sentences of a file of `form TAB upos TAB xpos` lines; an empty line ends a sentence."""
    sentences, rows = [], []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line:
                rows.append(line.split("\t"))
            elif rows:
                sentences.append(Sentence(*map(list, zip(*rows))))
                rows = []
    if rows:
        sentences.append(Sentence(*map(list, zip(*rows))))
    return sentences


def word_shape(word):
    """The token type id of every piece of `word`: how its original text uses case.

    Let `cased` be the code points of the word, in order, whose general category is Lu or Ll, and
    `upper` those of them whose category is Lu (title-case letters, Lt, count as neither). Then
      0: `upper` is empty (also digits, punctuation and scripts without case);
      1: `upper` is one letter, and it is the first of `cased` ("Bush", "I", "'Tis");
      2: `cased` has two letters or more, and all of them are upper ("AP", "U.S.");
      3: anything else ("iPhone", "McDonald", "eBAY").
    [CLS] and [SEP] have type 0, and so have pads.
    """
    cased = [c for c in map(unicodedata.category, word) if c in ("Lu", "Ll")]
    upper = cased.count("Lu")
    if upper == 0:
        return 0
    if upper == 1 and cased[0] == "Lu":
        return 1
    if upper == len(cased):
        return 2
    return 3


def encode(sentence_forms, pieces):
    """Ids, types and the index of every word's first piece, [CLS] and [SEP] included."""
    ids, types, first = [CLS], [0], []
    for word in sentence_forms:
        cut = pieces(word)[:MAX_PIECES - 2]
        first.append(len(ids))
        ids += cut
        types += [word_shape(word)] * len(cut)
    return ids + [SEP], types + [0], first


# ---------------------------------------------------------------------------------------------
# The model
# ---------------------------------------------------------------------------------------------


class Tagger(Body):
    def __init__(self, config, num_xpos=0):
        super().__init__(config)
        d = config["hidden_size"]
        self.classifier = nn.Linear(d, len(UPOS))
        # Only training has it: the finer Penn tags teach the layers more than UPOS alone.
        self.xpos = nn.Linear(d, num_xpos) if num_xpos else None

    def forward(self, ids, types, first):
        """Hidden states, [words, d], of the flat piece indices `first`; pads have id PAD."""
        x = self.hidden(ids, types)
        x = x.reshape(-1, x.shape[-1])[first]
        return F.dropout(x, self.p, self.training)


# ---------------------------------------------------------------------------------------------
# Tagging
# ---------------------------------------------------------------------------------------------


class Example:
    __slots__ = ("ids", "types", "first", "upos", "xpos")

    def __init__(self, ids, types, first, upos=None, xpos=None):
        self.ids, self.types, self.first, self.upos, self.xpos = ids, types, first, upos, xpos


def collate(examples):
    """Padded ids and types, [batch, pieces], and the flat indices of the words' first pieces."""
    ids = padded([e.ids for e in examples])
    types = padded([e.types for e in examples])
    first = [row * ids.shape[1] + f for row, e in enumerate(examples) for f in e.first]
    return ids, types, torch.tensor(first)


@torch.no_grad()
def predict(model, examples):
    """The logits, [words, labels], of every example, none longer than MAX_PIECES."""
    model.eval()
    out = [None] * len(examples)
    for batch in batches([len(e.ids) for e in examples], 2048):
        chosen = [examples[i] for i in batch]
        ids, types, first = collate(chosen)
        logits = model.classifier(model(ids, types, first))
        for i, part in zip(batch, logits.split([len(e.first) for e in chosen])):
            out[i] = part
    return out


def split_long(forms, pieces):
    """Ranges of words that fit the model; all but sentences of over 510 pieces give one."""
    begin, used = 0, 0
    for i, word in enumerate(forms):
        n = min(len(pieces(word)), MAX_PIECES - 2)
        if used + n > MAX_PIECES - 2 and i > begin:
            yield begin, i
            begin, used = i, 0
        used += n
    yield begin, len(forms)


def plain_examples(sentences, pieces):
    """Examples without variation, for predict(), and the number of them for each sentence."""
    examples, owners = [], []
    for i, s in enumerate(sentences):
        for begin, end in split_long(s.forms, pieces):
            ids, types, first = encode(s.forms[begin:end], pieces)
            examples.append(Example(ids, types, first))
            owners.append(i)
    return examples, owners


def tag(model, sentences, pieces):
    """For every sentence the logits of its words, [words, labels]."""
    examples, owners = plain_examples(sentences, pieces)
    parts = collections.defaultdict(list)
    for owner, logits in zip(owners, predict(model, examples)):
        parts[owner].append(logits)
    return [torch.cat(parts[i]) for i in range(len(sentences))]


def accuracy(logits, sentences):
    """The share of words whose likeliest tag is the treebank's."""
    right = total = 0
    for part, s in zip(logits, sentences):
        gold = torch.tensor([UPOS.index(t) for t in s.upos])
        right += (part.argmax(-1) == gold).sum().item()
        total += len(gold)
    return right / total


def load_checkpoint(folder):
    """The model and the tokenizer's Pieces that training left."""
    model = Tagger(read_json(os.path.join(folder, "config.json")))
    model.load_state_dict(load_file(os.path.join(folder, "weights.safetensors")))
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    return model.eval(), Pieces(tokenizer)
