"""What training and export of the spelling-to-sounds model share: words, the model, decoding.

The model is Hugging Face's T5 (T5ForConditionalGeneration: RMSNorm before every block, relative
position bias, ReLU, its own output matrix), written out here so that training is quick on a
CPU: a batch holds words of one length, so that neither stack needs a mask for pads, and matrices
that multiply the same vectors lie in one. to_hugging_face() and from_hugging_face() change the
names and take the fused matrices apart.
"""

import collections
import math

import torch
import torch.nn.functional as F
from torch import nn

PAD, EOS = range(2)
SPECIAL = ["<pad>", "</s>"]

Word = collections.namedtuple("Word", "spelling sounds")  # sounds: every listed pronunciation


# ---------------------------------------------------------------------------------------------
# Words
# ---------------------------------------------------------------------------------------------


def read_words(path):
    """The words of a file of `spelling TAB SOUND SOUND | SOUND SOUND` lines."""
    words = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            spelling, sounds = line.rstrip("\n").split("\t")
            words.append(Word(spelling, [p.split() for p in sounds.split(" | ")]))
    return words


def make_vocab(words):
    """The special tokens, then the letters and then the sounds that `words` have."""
    letters = sorted({c for w in words for c in w.spelling})
    return SPECIAL + letters + sorted({s for w in words for p in w.sounds for s in p})


def without_stress(sounds):
    return [s.rstrip("012") for s in sounds]


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def errors(found, words, change=list):
    """Per cent of wrong words and of wrong sounds; the closest listed pronunciation counts.

    The share of sounds is the sum of the distances by the sum of the closest one's lengths.
    """
    wrong = distance = length = 0
    for sounds, word in zip(found, words):
        sounds = change(sounds)
        best = min(((edit_distance(sounds, change(p)), -len(p)) for p in word.sounds))
        wrong += best[0] > 0
        distance += best[0]
        length -= best[1]
    return 100 * wrong / len(words), 100 * distance / length


# ---------------------------------------------------------------------------------------------
# The model
# ---------------------------------------------------------------------------------------------


def buckets(queries, keys, number, furthest, both_sides):
    """T5's buckets of the distances key - query, [queries, keys]."""
    d = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    base = torch.zeros_like(d)
    if both_sides:
        number //= 2
        base = (d > 0) * number
        d = d.abs()
    else:
        d = (-d).clamp(min=0)
    exact = number // 2
    far = exact + (torch.log(d.clamp(min=1).float() / exact) / math.log(furthest / exact)
                   * (number - exact)).long()
    return base + torch.where(d < exact, d, far.clamp(max=number - 1))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-6)


def matrix(rows, columns, gain=1.0):
    return nn.Parameter(torch.randn(rows, columns) * (gain * columns ** -0.5))


class Block(nn.Module):
    """One layer; a decoder's has `cross`, the attention to the encoder's output."""

    def __init__(self, config, decoder):
        super().__init__()
        d, f = config["d_model"], config["d_ff"]
        inner = config["num_heads"] * config["d_kv"]
        self.heads, self.width, self.p = config["num_heads"], config["d_kv"], config["dropout_rate"]
        self.norm, self.qkv, self.o = Norm(d), matrix(3 * inner, d), matrix(d, inner, 0.3)
        self.decoder = decoder
        if decoder:
            self.cross_norm, self.cross_o = Norm(d), matrix(d, inner, 0.3)
            self.cross_q, self.cross_kv = matrix(inner, d), matrix(2 * inner, d)
        self.ffn_norm, self.wi, self.wo = Norm(d), matrix(f, d), matrix(d, f, 0.3)

    def split(self, x, parts):
        """[parts, batch, heads, length, width] of fused projections."""
        b, t, _ = x.shape
        return x.view(b, t, parts, self.heads, self.width).permute(2, 0, 3, 1, 4)

    def attend(self, q, k, v, bias):
        # Training works with the usual scale; T5 has none, so the export puts it into q.
        scores = torch.matmul(q * self.width ** -0.5, k.transpose(-1, -2))
        if bias is not None:
            scores = scores + bias
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        return mixed.transpose(1, 2).flatten(2)

    def drop(self, x):
        """Dropout of whole columns, the same at all positions of a word: few random numbers."""
        if not self.training or not self.p:
            return x
        keep = (torch.rand(x.shape[0], 1, x.shape[2]) >= self.p).to(x.dtype) / (1 - self.p)
        return x * keep

    def ffn(self, x):
        y = F.linear(F.relu(F.linear(self.ffn_norm(x), self.wi)), self.wo)
        return x + self.drop(y)

    def forward(self, x, bias, memory=None):
        q, k, v = self.split(F.linear(self.norm(x), self.qkv), 3)
        x = x + self.drop(F.linear(self.attend(q, k, v, bias), self.o))
        if self.decoder:
            k, v = self.split(F.linear(memory, self.cross_kv), 2)
            q = self.split(F.linear(self.cross_norm(x), self.cross_q), 1)[0]
            x = x + self.drop(F.linear(self.attend(q, k, v, None), self.cross_o))
        return self.ffn(x)


class Stack(nn.Module):
    def __init__(self, config, layers, decoder):
        super().__init__()
        self.config, self.decoder = config, decoder
        self.blocks = nn.ModuleList(Block(config, decoder) for _ in range(layers))
        self.norm = Norm(config["d_model"])
        number = config["relative_attention_num_buckets"]
        self.bias = nn.Parameter(self.start_bias(number, config["num_heads"]))
        self.drop = self.blocks[0].drop
        self.places = {}

    def start_bias(self, number, heads):
        """Heads begin with a look at one neighbour each, as far as distances have own buckets."""
        bias = torch.zeros(number, heads)
        for h in range(heads):
            centre = -h if self.decoder else (h + 1) // 2 * (1 if h % 2 else -1)
            half = number // 2
            for bucket in range(number):
                d = -bucket if self.decoder else bucket - half if bucket >= half else -bucket
                bias[bucket, h] = -min(0.7 * abs(d - centre), 4.0)
        return bias

    def place_bias(self, length):
        place = self.places.get(length)
        if place is None:
            c = self.config
            place = buckets(length, length, c["relative_attention_num_buckets"],
                            c["relative_attention_max_distance"], not self.decoder)
            self.places[length] = place
        bias = self.bias[place].permute(2, 0, 1)
        if self.decoder:
            bias = bias + torch.full((length, length), -1e9).triu(1)
        return bias

    def forward(self, x, memory=None):
        bias = self.place_bias(x.shape[1])
        x = self.drop(x)
        for block in self.blocks:
            x = block(x, bias, memory)
        return self.norm(x)


class Speller(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        d, n = config["d_model"], config["vocab_size"]
        self.shared = nn.Parameter(torch.randn(n, d))
        self.encoder = Stack(config, config["num_layers"], decoder=False)
        self.decoder = Stack(config, config["num_decoder_layers"], decoder=True)
        self.lm_head = matrix(n, d, 0.5)

    def encode(self, ids):
        return self.encoder(F.embedding(ids, self.shared))

    def decode(self, ids, memory):
        return F.linear(self.decoder(F.embedding(ids, self.shared), memory), self.lm_head)

    def forward(self, ids, begun):
        return self.decode(begun, self.encode(ids))


# ---------------------------------------------------------------------------------------------
# Hugging Face's names
# ---------------------------------------------------------------------------------------------


def names(config):
    """Every (name here, first row, rows, Hugging Face's name, factor of the export)."""
    inner = config["num_heads"] * config["d_kv"]
    scale = config["d_kv"] ** -0.5
    yield "shared", 0, None, "shared.weight", 1.0
    yield "lm_head", 0, None, "lm_head.weight", 1.0
    for stack, layers in (("encoder", "num_layers"), ("decoder", "num_decoder_layers")):
        first = f"{stack}.block.0.layer.0.SelfAttention."
        yield f"{stack}.bias", 0, None, first + "relative_attention_bias.weight", 1.0
        yield f"{stack}.norm.weight", 0, None, f"{stack}.final_layer_norm.weight", 1.0
        for i in range(config[layers]):
            mine, theirs = f"{stack}.blocks.{i}.", f"{stack}.block.{i}.layer."
            for part, letter in enumerate("qkv"):
                name = f"{theirs}0.SelfAttention.{letter}.weight"
                yield mine + "qkv", part * inner, inner, name, scale if letter == "q" else 1.0
            yield mine + "o", 0, None, theirs + "0.SelfAttention.o.weight", 1.0
            yield mine + "norm.weight", 0, None, theirs + "0.layer_norm.weight", 1.0
            ffn = 1
            if stack == "decoder":
                ffn, cross = 2, theirs + "1.EncDecAttention."
                yield mine + "cross_q", 0, None, cross + "q.weight", scale
                yield mine + "cross_kv", 0, inner, cross + "k.weight", 1.0
                yield mine + "cross_kv", inner, inner, cross + "v.weight", 1.0
                yield mine + "cross_o", 0, None, cross + "o.weight", 1.0
                yield mine + "cross_norm.weight", 0, None, theirs + "1.layer_norm.weight", 1.0
            yield mine + "wi", 0, None, f"{theirs}{ffn}.DenseReluDense.wi.weight", 1.0
            yield mine + "wo", 0, None, f"{theirs}{ffn}.DenseReluDense.wo.weight", 1.0
            yield mine + "ffn_norm.weight", 0, None, f"{theirs}{ffn}.layer_norm.weight", 1.0


def to_hugging_face(state, config):
    out = {}
    for mine, first, rows, theirs, factor in names(config):
        part = state[mine] if rows is None else state[mine][first:first + rows]
        out[theirs] = (part * factor).contiguous()
    return out


def from_hugging_face(tensors, config):
    parts = collections.defaultdict(list)
    for mine, first, _, theirs, factor in names(config):
        parts[mine].append((first, tensors[theirs] / factor))
    return {mine: torch.cat([p for _, p in sorted(rows, key=lambda r: r[0])])
            for mine, rows in parts.items()}


# ---------------------------------------------------------------------------------------------
# Decoding
# ---------------------------------------------------------------------------------------------


def by_length(spellings, size):
    """Places of spellings of one length, at most `size` a time."""
    places = collections.defaultdict(list)
    for i, spelling in enumerate(spellings):
        places[len(spelling)].append(i)
    for length in sorted(places):
        for at in range(0, len(places[length]), size):
            yield places[length][at:at + size]


def letter_ids(spellings, ids):
    return torch.tensor([[ids[c] for c in s] + [EOS] for s in spellings])


@torch.no_grad()
def greedy(model, spellings, vocab, longest=40, size=512):
    """The sounds of every spelling, the likeliest one at every step."""
    model.eval()
    ids = {piece: i for i, piece in enumerate(vocab)}
    out = [None] * len(spellings)
    for places in by_length(spellings, size):
        memory = model.encode(letter_ids([spellings[i] for i in places], ids))
        begun = torch.full((len(places), 1), PAD)
        alive = torch.arange(len(places))
        for _ in range(longest):
            best = model.decode(begun, memory)[:, -1].argmax(-1)
            begun = torch.cat([begun, best[:, None]], 1)
            ends = (best == EOS) | torch.tensor(begun.shape[1] > longest)
            for row in ends.nonzero()[:, 0].tolist():
                out[places[alive[row]]] = [vocab[i] for i in begun[row, 1:].tolist() if i != EOS]
            begun, memory, alive = begun[~ends], memory[~ends], alive[~ends]
            if not len(alive):
                break
    return out


class Hypotheses:
    """What beam search has finished of one word: the `beams` best by score / length^penalty."""

    def __init__(self, beams, penalty):
        self.beams, self.penalty, self.kept, self.done = beams, penalty, [], False

    def add(self, ids, score):
        self.kept.append((score / len(ids) ** self.penalty, ids))
        self.kept.sort(key=lambda pair: -pair[0])
        del self.kept[self.beams:]

    def settle(self, best, length):
        """Done if no beam can reach the worst that is kept, as Hugging Face estimates it."""
        full = len(self.kept) == self.beams
        self.done = self.done or (full and self.kept[-1][0] >= best / length ** self.penalty)


def advance(found, begun, scores, logits, beams):
    """One step of one word: the beams that go on, as (row, id, score); ends go into `found`.

    Of the 2 * beams likeliest continuations an end counts only among the first `beams`.
    """
    total = torch.log_softmax(logits, -1) + scores[:, None]
    best, place = total.flatten().topk(2 * beams)
    going = []
    for rank, (score, at) in enumerate(zip(best.tolist(), place.tolist())):
        row, token = divmod(at, logits.shape[1])
        if token == EOS:
            if rank < beams:
                found.add(begun[row, 1:].tolist() + [EOS], score)
        elif len(going) < beams:
            going.append((row, token, score))
    found.settle(best[0].item(), begun.shape[1])
    return going


@torch.no_grad()
def beam_search(model, spellings, vocab, beams=4, penalty=1.0, longest=48, size=128):
    """The ids and the score of every spelling's best hypothesis, as Hugging Face generates it."""
    model.eval()
    ids = {piece: i for i, piece in enumerate(vocab)}
    out = [None] * len(spellings)
    for places in by_length(spellings, size):
        memory = model.encode(letter_ids([spellings[i] for i in places], ids))
        memory = memory.repeat_interleave(beams, 0)
        begun = torch.full((len(places) * beams, 1), PAD)
        scores = torch.full((len(places), beams), -1e9)
        scores[:, 0] = 0
        found = [Hypotheses(beams, penalty) for _ in places]
        live = list(range(len(places)))
        for step in range(longest):
            logits = model.decode(begun, memory)[:, -1].view(len(live), beams, -1)
            begun = begun.view(len(live), beams, -1)
            still, rows, tokens, next_scores = [], [], [], []
            for k, word in enumerate(live):
                going = advance(found[word], begun[k], scores[k], logits[k], beams)
                if step + 1 == longest and not found[word].done:
                    for row, token, score in going:
                        found[word].add(begun[k, row, 1:].tolist() + [token], score)
                elif not found[word].done:
                    still.append(word)
                    rows += [k * beams + row for row, _, _ in going]
                    tokens += [token for _, token, _ in going]
                    next_scores.append([score for *_, score in going])
            if not still or step + 1 == longest:
                break
            begun = begun.flatten(0, 1)[rows]
            begun = torch.cat([begun, torch.tensor(tokens)[:, None]], 1)
            memory, scores, live = memory[rows], torch.tensor(next_scores), still
        for place, hypotheses in zip(places, found):
            out[place] = hypotheses.kept[0][::-1]
    return out


def sounds_of(ids, vocab):
    return [vocab[i] for i in ids if i not in (PAD, EOS)]
