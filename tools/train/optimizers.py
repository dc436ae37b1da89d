"""What the recipes share: Muon with AdamW, the rate over time, averaged weights, checkpoints.

Muon: K. Jordan and others, "Muon: An optimizer for hidden layers in neural networks", 2024. The
momentum of a weight matrix is replaced by the nearest matrix with orthonormal rows or columns. So every direction of it
learns at the same pace. A small model needs about half as many steps as with AdamW. Vectors, embeddings and heads go on
with AdamW.
"""
import copy
import math
import os
from pathlib import Path

import torch

# Coefficients of the quintic Newton-Schulz iteration (same source): five rounds bring all singular
# values near 1, without a decomposition.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
ADAM_BETAS = (0.9, 0.98)


def orthogonal(matrices):
    """The nearest semi-orthogonal matrices (N, rows, columns), in about bf16's precision."""
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = a * x + (b * square + c * (square @ square)) @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal; decoupled weight decay. Takes matrices only."""

    def __init__(self, matrices, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in shapes.items():
                self._step_shape(group, shape, matrices)

    def _step_shape(self, group, shape, matrices):
        moved = []
        for matrix in matrices:
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            state["momentum"].lerp_(matrix.grad, 1 - group["momentum"])
            moved.append(matrix.grad.lerp(state["momentum"], group["momentum"]))
        # A step of this size has the root mean square 0.2 of AdamW's whatever the shape (J. Liu and
        # others, "Muon is scalable for LLM training", 2025), so one rate fits both.
        scale = 0.2 * math.sqrt(max(shape))
        for matrix, update in zip(matrices, orthogonal(torch.stack(moved))):
            matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.add_(update, alpha=-group["lr"] * scale)


class Optimizers:
    """Muon for the matrices of the layers, AdamW for all else; one peak rate each."""

    def __init__(self, model, is_hidden, muon_rate, adam_rate, weight_decay):
        hidden, vectors, others = [], [], []
        for name, parameter in model.named_parameters():
            kind = (hidden if parameter.dim() == 2 and is_hidden(name)
                    else others if parameter.dim() >= 2 else vectors)
            kind.append(parameter)
        self.parts = [
            Muon(hidden, lr=muon_rate, weight_decay=weight_decay),
            torch.optim.AdamW([{"params": others, "weight_decay": weight_decay},
                               {"params": vectors, "weight_decay": 0.0}],
                              lr=adam_rate, betas=ADAM_BETAS)]
        self.peaks = [muon_rate, adam_rate]

    def set_share(self, share):
        """Sets every rate to its share of the peak."""
        for part, peak in zip(self.parts, self.peaks):
            for group in part.param_groups:
                group["lr"] = peak * share

    def step(self):
        for part in self.parts:
            part.step()
            part.zero_grad(set_to_none=True)

    def state_dict(self):
        # Without the rates, which set_share sets, and the other settings, which are the code's.
        return [part.state_dict()["state"] for part in self.parts]

    def load_state_dict(self, states):
        for part, state in zip(self.parts, states):
            part.load_state_dict({**part.state_dict(), "state": state})


def rate_share(step, total, warm_up):
    """Share of the peak rate: a linear warm-up, then a cosine down to nothing."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, total - warm_up)))


class Average:
    """An exponential moving average of the weights, which is what is shipped."""

    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model, step):
        # The first steps count for less, so that the random start is soon forgotten.
        decay = min(self.decay, (1 + step) / (10 + step))
        ours = [p for p in self.model.parameters()]
        theirs = [p.detach() for p in model.parameters()]
        for average, latest in zip(ours, theirs):
            average.lerp_(latest, 1 - decay)


class Run:
    """A training run that can be stopped at any time and goes on where it last saved."""

    def __init__(self, folder, model, optimizers, average):
        self.path = Path(folder) / "run.pt"
        self.parts = {"model": model, "optimizers": optimizers, "average": average.model}

    def save(self, step):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["step"] = step
        state["random"] = torch.get_rng_state()
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self.path)

    def resume(self):
        """The step to go on with; 0 for a new run."""
        if not self.path.exists():
            return 0
        state = torch.load(self.path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["random"])
        return state["step"]
