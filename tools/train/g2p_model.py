"""The network of the g2p-en recipe: an encoder-decoder with the names, shapes and arithmetic of
Hugging Face's MarianMTModel, in plain PyTorch; greedy and beam search.

A. Vaswani and others, "Attention is all you need", 2017. It has norms after the residual sums, sinusoidal positions,
one table of embeddings for letters, phonemes and the output. Written for batches of sources of one length, which need
no mask.
"""
import math

import torch
from torch import nn
from torch.nn import functional

WIDTH = 256
HEADS = 4
FEED_FORWARD = 1024
ENCODER_LAYERS = 4
DECODER_LAYERS = 2
POSITIONS = 64
INIT_STD = 0.02


def config(vocabulary, dropout):
    """What config.json says of the model."""
    pad, end = vocabulary["<pad>"], vocabulary["</s>"]
    return {
        "architectures": ["MarianMTModel"], "model_type": "marian", "dtype": "float32",
        "activation_function": "relu", "d_model": WIDTH, "scale_embedding": True,
        "encoder_layers": ENCODER_LAYERS, "decoder_layers": DECODER_LAYERS,
        "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": FEED_FORWARD, "decoder_ffn_dim": FEED_FORWARD,
        "dropout": dropout, "attention_dropout": 0.0, "activation_dropout": 0.0,
        "max_position_embeddings": POSITIONS, "init_std": INIT_STD,
        "vocab_size": len(vocabulary), "decoder_vocab_size": len(vocabulary),
        "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        "is_encoder_decoder": True, "pad_token_id": pad, "eos_token_id": end,
        "bos_token_id": None, "forced_eos_token_id": None, "decoder_start_token_id": pad,
        "use_cache": True}


def sinusoids():
    """Marian's order: the sines of all frequencies, then their cosines."""
    half = WIDTH // 2
    angles = [[position / 10000 ** (i / half) for i in range(half)]
              for position in range(POSITIONS)]
    return torch.tensor([[math.sin(a) for a in row] + [math.cos(a) for a in row]
                         for row in angles])


def dropped(x, share):
    """Dropout with eight random bits a value. PyTorch's own takes a number of 64 for each on a CPU. That is a quarter
    of a step's time here."""
    threshold = round(share * 256)
    if threshold == 0:
        return x
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-2**63, None)
    kept = words.view(torch.uint8)[:x.numel()].view(x.shape) >= threshold
    return x * kept * (256 / (256 - threshold))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(WIDTH, WIDTH))

    def joined(self, x, *projections):
        """Several projections of the same rows as one product: (B, T, W) -> n of (B, H, T, D)."""
        weight = torch.cat([p.weight for p in projections])
        bias = torch.cat([p.bias for p in projections])
        rows = functional.linear(x, weight, bias)
        rows = rows.view(*x.shape[:2], len(projections), HEADS, WIDTH // HEADS)
        return rows.permute(2, 0, 3, 1, 4).unbind()

    def attend(self, q, k, v, mask=None):
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        if mask is not None:
            scores = scores + mask
        sums = scores.softmax(-1) @ v
        return self.out_proj(sums.transpose(1, 2).reshape(q.shape[0], q.shape[2], WIDTH))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()
        self.self_attn_layer_norm = nn.LayerNorm(WIDTH)
        self.fc1 = nn.Linear(WIDTH, FEED_FORWARD)
        self.fc2 = nn.Linear(FEED_FORWARD, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def attended(self, x, dropout, mask=None):
        attention = self.self_attn
        q, k, v = attention.joined(x, attention.q_proj, attention.k_proj, attention.v_proj)
        return self.self_attn_layer_norm(x + dropped(attention.attend(q, k, v, mask), dropout))

    def fed_forward(self, x, dropout):
        return self.final_layer_norm(x + dropped(self.fc2(self.fc1(x).relu()), dropout))

    def forward(self, x, dropout):
        return self.fed_forward(self.attended(x, dropout), dropout)


class DecoderLayer(EncoderLayer):
    def __init__(self):
        super().__init__()
        self.encoder_attn = Attention()
        self.encoder_attn_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x, encoded, mask, dropout):
        x = self.attended(x, dropout, mask)
        attention = self.encoder_attn
        q, = attention.joined(x, attention.q_proj)
        k, v = attention.joined(encoded, attention.k_proj, attention.v_proj)
        x = self.encoder_attn_layer_norm(x + dropped(attention.attend(q, k, v), dropout))
        return self.fed_forward(x, dropout)


class Half(nn.Module):
    """Encoder or decoder: its layers, under the names that the files use."""

    def __init__(self, make, layers):
        super().__init__()
        self.layers = nn.ModuleList(make() for _ in range(layers))


class G2p(nn.Module):
    """Letters (B, S) and phonemes so far (B, T) -> scores of the next ones (B, T, V)."""

    def __init__(self, tokens):
        super().__init__()
        self.model = nn.ModuleDict({
            "shared": nn.Embedding(tokens, WIDTH),
            "encoder": Half(EncoderLayer, ENCODER_LAYERS),
            "decoder": Half(DecoderLayer, DECODER_LAYERS)})
        self.register_buffer("final_logits_bias", torch.zeros(1, tokens))
        self.register_buffer("positions", sinusoids(), persistent=False)
        self.register_buffer("causal", torch.full((POSITIONS, POSITIONS), -math.inf).triu(1),
                             persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=INIT_STD)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def embedded(self, tokens, dropout):
        x = self.model["shared"](tokens) * WIDTH ** 0.5 + self.positions[:tokens.shape[1]]
        return dropped(x, dropout)

    def encode(self, sources, dropout=0.0):
        x = self.embedded(sources, dropout)
        for layer in self.model["encoder"].layers:
            x = layer(x, dropout)
        return x

    def decode(self, encoded, inputs, dropout=0.0):
        x = self.embedded(inputs, dropout)
        length = inputs.shape[1]
        for layer in self.model["decoder"].layers:
            x = layer(x, encoded, self.causal[:length, :length], dropout)
        return functional.linear(x, self.model["shared"].weight) + self.final_logits_bias

    def forward(self, sources, inputs, dropout=0.0):
        return self.decode(self.encode(sources, dropout), inputs, dropout)


@torch.no_grad()
def greedy(model, sources, end, most):
    """The likeliest token at each step: rows of ids, without <pad> at the front and </s>."""
    model.eval()
    encoded = model.encode(sources)
    rows = torch.zeros(len(sources), 1, dtype=torch.int64)
    done = torch.zeros(len(sources), dtype=torch.bool)
    for _ in range(most):
        chosen = model.decode(encoded, rows)[:, -1].argmax(-1)
        rows = torch.cat([rows, chosen.masked_fill(done, end)[:, None]], dim=1)
        done |= chosen == end
        if done.all():
            break
    return [cut_at(row, end) for row in rows[:, 1:].tolist()]


def cut_at(row, end):
    return row[:row.index(end)] if end in row else row


@torch.no_grad()
def beam_search(model, sources, end, beams, most):
    """Beam search as Hugging Face's generate() does it with its defaults. The score of a finished text is its
    log-probability divided by its length with </s>. A search ends when no beam can become better than its finished ones
    at the length that it has."""
    model.eval()
    return [_beam_search_one(model, source[None], end, beams, most) for source in sources]


def _beam_search_one(model, source, end, beams, most):
    encoded = model.encode(source)
    rows, scores = torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1)
    finished = []  # (score, ids), the best first
    for length in range(1, most + 1):
        logits = model.decode(encoded.expand(len(rows), -1, -1), rows)[:, -1]
        sums = scores[:, None] + logits.log_softmax(-1)
        best, places = sums.flatten().topk(min(2 * beams, sums.numel()))
        kept = []
        for rank, (score, place) in enumerate(zip(best.tolist(), places.tolist())):
            row, token = divmod(place, logits.shape[1])
            ids = rows[row].tolist() + [token]
            if token != end:
                kept.append((score, ids))
            elif rank < beams:
                finished.append((score / length, ids[1:-1]))
            if len(kept) == beams:
                break
        finished = sorted(finished, key=lambda item: -item[0])[:beams]
        if len(finished) == beams and best[0].item() / length <= finished[-1][0]:
            return finished[0][1]
        rows = torch.tensor([ids for _, ids in kept])
        scores = torch.tensor([score for score, _ in kept])
    finished += [(score / most, ids[1:]) for score, ids in zip(scores.tolist(), rows.tolist())]
    return max(finished, key=lambda item: item[0])[1]
