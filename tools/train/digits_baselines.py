#!/usr/bin/env python3
"""Baselines of models/digits on the same split: a linear classifier and the nearest neighbors.

    tools/train/digits_baselines.py mnist-t10k

Needs PyTorch.
"""
import sys

import torch

import digits_data

RIDGE = 10.0
NEIGHBOURS = 3


def main():
    rows, labels = digits_data.read_digits(sys.argv[1])
    pictures = torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8).double() / 255
    pictures, labels = pictures.view(len(rows), -1), torch.tensor(labels)
    cut = digits_data.TRAIN_PICTURES

    def show(name, found):
        right = (found == labels[cut:]).sum().item()
        print(f"{name}: {right} of {len(found)} right, {100 * right / len(found):.2f}%")

    # Ridge regression on one-hot labels, in closed form.
    x = torch.cat([pictures, torch.ones(len(rows), 1)], 1)
    square = x[:cut].T @ x[:cut] + RIDGE * torch.eye(x.shape[1])
    one_hot = torch.nn.functional.one_hot(labels[:cut]).double()
    weights = torch.linalg.solve(square, x[:cut].T @ one_hot)
    show("linear", (x[cut:] @ weights).argmax(1))

    near = torch.cdist(pictures[cut:], pictures[:cut]).topk(NEIGHBOURS, largest=False).indices
    show(f"{NEIGHBOURS} nearest neighbours", labels[near].mode(1).values)


if __name__ == "__main__":
    main()
