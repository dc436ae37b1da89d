#!/usr/bin/env python3
"""Writes a LoRA adapter for models/shakespeare, in PEFT's layout: make_adapter.py FOLDER. Its numbers are of a fixed
seed, and large enough to change what the model writes."""
import json
import random
import struct
import sys
from pathlib import Path

RANK, WIDTH = 4, 192

folder = Path(sys.argv[1])
folder.mkdir(parents=True)
numbers = random.Random(7)
header, data = {}, b""
for layer in range(2):
    for name, shape in (("A", (RANK, WIDTH)), ("B", (WIDTH, RANK))):
        values = struct.pack(f"<{RANK * WIDTH}f", *(numbers.gauss(0, 0.2) for _ in range(RANK * WIDTH)))
        tensor = f"base_model.model.model.layers.{layer}.self_attn.v_proj.lora_{name}.weight"
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
(folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["v_proj"], "bias": "none"}
(folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
