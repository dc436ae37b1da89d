#!/usr/bin/env python3
"""Makes tests/image/golden/pictures.safetensors: what Pillow and transformers make of small pictures.

    python3 tools/golden/picture_golden.py OUTPUT.safetensors

Needs numpy, Pillow and transformers (their versions go into the file's metadata). Tensors:
  source                            the picture that is resized (H, W, 3)
  resize.<filter>.<w>x<h>           source, resized; filter is Pillow's number
  file.<name>, pixels.<name>        a picture file's bytes, and its pixels in RGB
  config.<n>, values.<n>            a preprocessor_config.json, and pixel_values of source
"""
import io
import json
import struct
import sys

import numpy as np
import PIL
import transformers
from PIL import Image
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

SEED = 20
RESIZE = Image.Image.resize


def columns_first(image, size, *args, **kwargs):
    """Pillow's resize up to version 12; version 13 takes the rows first where that is faster."""
    wide = RESIZE(image, (size[0], image.height), *args, **kwargs)
    return RESIZE(wide, size, *args, **kwargs)


def text(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def source():
    """Noise over a gradient: every filter rings, clips and rounds somewhere."""
    rng = np.random.default_rng(SEED)
    y, x = np.mgrid[0:21, 0:29]
    ramp = np.stack([x * 9, y * 12, (x + y) * 5], -1)
    noise = rng.integers(-90, 90, ramp.shape)
    return np.clip(ramp + noise, 0, 255).astype(np.uint8)


def resized(tensors, image):
    for resample in range(6):
        for size in [(11, 8), (33, 5), (29, 9), (1, 1)]:
            small = image.resize(size, resample=resample)
            tensors[f"resize.{resample}.{size[0]}x{size[1]}"] = np.array(small)


def add_file(tensors, name, image, **options):
    stream = io.BytesIO()
    image.save(stream, **options)
    tensors["file." + name] = np.frombuffer(stream.getvalue(), np.uint8)
    tensors["pixels." + name] = np.array(Image.open(stream).convert("RGB"))


def files(tensors):
    y, x = np.mgrid[0:9, 0:13]
    rgb = np.stack([x * 19, y * 28, (x + y) * 12], -1).astype(np.uint8)
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.dstack([rgb, (x * 20).astype(np.uint8)]))
    palette = image.quantize(7)
    add_file(tensors, "rgb.png", image, format="PNG")
    add_file(tensors, "alpha.png", alpha, format="PNG")
    add_file(tensors, "grey.png", image.convert("L"), format="PNG")
    add_file(tensors, "grey_alpha.png", alpha.convert("LA"), format="PNG")
    add_file(tensors, "palette.png", palette, format="PNG", transparency=3)
    add_file(tensors, "bits.png", image.convert("1"), format="PNG")
    add_file(tensors, "rgb.bmp", image, format="BMP")
    add_file(tensors, "palette.gif", palette, format="GIF", transparency=2)
    add_file(tensors, "interlaced.gif", image.quantize(64), format="GIF", interlace=1)
    add_file(tensors, "animated.gif", palette, format="GIF", save_all=True,
             append_images=[palette.rotate(180)])
    add_file(tensors, "rgb.ppm", image, format="PPM")
    add_file(tensors, "grey.pgm", image.convert("L"), format="PPM")
    add_file(tensors, "bits.pbm", image.convert("1"), format="PPM")
    add_file(tensors, "444.jpg", image, format="JPEG", quality=90, subsampling=0)
    add_file(tensors, "420.jpg", image, format="JPEG", quality=90, subsampling=2)
    add_file(tensors, "progressive.jpg", image, format="JPEG", quality=90, progressive=True)
    add_file(tensors, "grey.jpg", image.convert("L"), format="JPEG", quality=90)


def processed(tensors, image):
    vit, deit, conv_next = ViTImageProcessorPil, DeiTImageProcessorPil, ConvNextImageProcessorPil
    imagenet = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    size = {"height": 6, "width": 9}
    cases = [
        (vit, {"image_processor_type": "ViTImageProcessor", "size": size}),
        (vit, {"feature_extractor_type": "ViTFeatureExtractor", "size": 8, "resample": 3, **imagenet}),
        (vit, {"image_processor_type": "ViTImageProcessorFast", "size": {"shortest_edge": 8},
               "do_center_crop": True, "crop_size": {"height": 7, "width": 6}}),
        (vit, {"image_processor_type": "ViTImageProcessor", "size": 8, "do_rescale": False}),
        (vit, {"image_processor_type": "ViTImageProcessor", "size": 8, "do_normalize": False}),
        (deit, {"feature_extractor_type": "DeiTFeatureExtractor", "size": 9, "crop_size": 6}),
        (deit, {"image_processor_type": "DeiTImageProcessor", "size": 6, "crop_size": 9}),
        (deit, {"image_processor_type": "DeiTImageProcessor", "size": size, "do_center_crop": False}),
        (conv_next, {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 7, **imagenet}),
        (conv_next, {"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0.9,
                     "size": {"shortest_edge": 8}, "rescale_factor": 0.01}),
    ]
    for number, (processor, config) in enumerate(cases):
        values = processor(**config)(images=image, return_tensors="np")["pixel_values"]
        tensors[f"config.{number}"] = text(config)
        tensors[f"values.{number}"] = np.asarray(values, dtype="<f4")


def write(path, tensors):
    header, data = {"__metadata__": {"seed": str(SEED), "pillow": PIL.__version__,
                                     "transformers": transformers.__version__}}, b""
    for name, value in sorted(tensors.items()):
        dtype = "F32" if value.dtype == np.float32 else "U8"
        header[name] = {"dtype": dtype, "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(head)) + head + data)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Image.Image.resize = columns_first
    tensors = {"source": source()}
    image = Image.fromarray(tensors["source"])
    resized(tensors, image)
    files(tensors)
    processed(tensors, image)
    write(sys.argv[1], tensors)


if __name__ == "__main__":
    main()
