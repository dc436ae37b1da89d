"""What the tests of the program share: running it, and small safetensors files."""
import array
import json
import os
import struct
import subprocess

PROGRAM = ""  # set by cli_test.py
MODEL = ""

# Where no Vulkan driver is to be found, on any machine.
NO_DRIVER = {name: os.devnull + "/driver.json" for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")}


def device_arguments():
    """What tools/test asks GPU tests to run on."""
    arguments = []
    for variable, option in (("VKFORMER_TEST_DEVICE", "--device"), ("VKFORMER_TEST_TIER", "--tier"),
                             ("VKFORMER_TEST_LIMITS", "--limits")):
        if os.environ.get(variable):
            arguments += [option, os.environ[variable]]
    return arguments


def run(*arguments, text=None, environment=None, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], input=text, stdout=stdout, stderr=subprocess.PIPE,
                          encoding="utf-8", env={**os.environ, **(environment or {})}, timeout=600)


def run_on_device(*arguments, **options):
    return run(*arguments, *device_arguments(), **options)


def write_tensors(path, tensors):
    """tensors: name -> (dtype, shape, values), dtype F32, I64 or U8."""
    header, blob = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        code = {"F32": "f", "I64": "q", "U8": "B"}[dtype]
        raw = values.tobytes() if isinstance(values, array.array) and values.typecode == code else \
            struct.pack("<%d%s" % (len(values), code), *values)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def byte_names():
    """GPT-2's printable character for each byte."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    names, more = {b: chr(b) for b in plain}, 0
    for byte in range(256):
        if byte not in names:
            names[byte] = chr(256 + more)
            more += 1
    return [names[byte] for byte in range(256)]


def byte_level_tokenizer(tokens, merges):
    """tokenizer.json of byte-level BPE, with the token <end> after the others."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": len(tokens), "content": "<end>", "single_word": False,
                          "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}}


def write_llama(directory, values, config, files):
    """A model of the llama family: config.json of its sizes, what else config has, and files (name
    -> JSON). Its tensors are values(count, is_matrix), asked for in order."""
    width, inner, vocab = (config[key] for key in ("hidden_size", "intermediate_size",
                                                   "vocab_size"))
    tensors = {}

    def add(name, *shape):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = ("F32", list(shape), values(count, len(shape) > 1))

    add("model.embed_tokens.weight", vocab, width)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            add(f"{prefix}self_attn.{name}_proj.weight", width, width)
        add(prefix + "mlp.gate_proj.weight", inner, width)
        add(prefix + "mlp.up_proj.weight", inner, width)
        add(prefix + "mlp.down_proj.weight", width, inner)
        add(prefix + "input_layernorm.weight", width)
        add(prefix + "post_attention_layernorm.weight", width)
    add("model.norm.weight", width)
    if not config.get("tie_word_embeddings"):
        add("lm_head.weight", vocab, width)
    write_tensors(os.path.join(directory, "model.safetensors"), tensors)
    whole = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "bos_token_id": None,
             **config}
    for name, content in {"config.json": whole, **files}.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def read_tensors(path):
    """name -> (dtype, shape, values); values of F32 and I64 only."""
    with open(path, "rb") as file:
        blob = file.read()
    size = struct.unpack("<Q", blob[:8])[0]
    tensors = {}
    for name, entry in json.loads(blob[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = blob[8 + size + begin:8 + size + end]
        code = {"F32": "f", "I64": "q"}[entry["dtype"]]
        tensors[name] = (entry["dtype"], entry["shape"],
                         [value for value, in struct.iter_unpack("<" + code, raw)])
    return tensors
