"""Maps of attention as arrays, pages, pictures and figures; multi-head attention without a model."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _c
from ._calls import Handle, Keep, bytes_from, call, fill, get, make, plain, read, text_array, texts_of
from .devices import Device, default_device
from .media import ImageLike, image_of
from .sessions import Inputs
from .tensors import ArrayLike, Tensors, floats_of, shown, tensors_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MapsInfo:
    """See vkf_maps_info of vkformer/c/attention_view.h. `first_head` is -1 for a mean over heads."""

    heads: int
    first_head: int
    rows: int
    columns: int
    layers: int
    kind: str


class AttentionMaps(Handle):
    """Attention of one kind ("self", "encoder", "decoder", "cross"), of one item of a batch, from the
    outputs of Session.run(..., attentions=True)."""

    _kind = "vkf_maps"

    def __init__(self, outputs: Tensors, kind: str, item: int = 0) -> None:
        self._adopt(make("vkf_maps_from", outputs, kind, item))
        self.row_labels: list[str] | None = None
        self.column_labels: list[str] | None = None

    def _like(self, pointer: Any) -> "AttentionMaps":
        made = AttentionMaps._of(pointer)
        made.row_labels, made.column_labels = self.row_labels, self.column_labels
        return made

    def mean(self) -> "AttentionMaps":
        """The mean over heads."""
        return self._like(make("vkf_maps_mean", self))

    def rollout(self) -> "AttentionMaps":
        """Attention rollout (Abnar and Zuidema 2020)."""
        return self._like(make("vkf_maps_rollout", self))

    def set_labels(self, rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
        """Names the tokens: as many as there are rows and columns, or None for numbers."""
        info, arrays = self.info, []
        for what, labels, count in (("rows", rows, info.rows), ("columns", columns, info.columns)):
            if labels is not None and len(texts_of(labels, what)) != count:
                raise ValueError(f"[{what}] has {len(labels)} labels, and the maps have {count} {what}.")
            arrays.append(None if labels is None else text_array(labels, what))
        call("vkf_maps_set_labels", self, *arrays)
        self.row_labels = None if rows is None else list(rows)
        self.column_labels = None if columns is None else list(columns)

    @property
    def info(self) -> MapsInfo:
        """How many there are, and of what."""
        return MapsInfo(**read(get("vkf_maps_get", self)))

    @property
    def layers(self) -> dict[int, Any]:
        """The weights of each layer (H,T,S), shown without a copy, by the layer's number."""
        info, found = self.info, {}
        for index in range(info.layers):
            layer, values = ctypes.c_int32(), ctypes.POINTER(ctypes.c_float)()
            call("vkf_maps_get_layer", self, index, ctypes.byref(layer), ctypes.byref(values))
            address = ctypes.cast(values, ctypes.c_void_p).value
            found[layer.value] = shown(address, "F32", (info.heads, info.rows, info.columns), self)
        return found

    def png(self, **options: Any) -> bytes:
        """All maps as one picture of small heat maps: a PNG file. Options: cell_size, range
        ("zero_to_one", "zero_to_max"), title."""
        with Keep() as keep:
            return bytes_from("vkf_maps_grid_png", self, ctypes.byref(fill("vkf_view_options", options, keep, "png()")))

    def html(self, title: str | None = None) -> str:
        """A page for a browser, complete in itself."""
        return attention_page([self], title)

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture of all maps."""
        import base64
        return f'<img alt="attention maps" src="data:image/png;base64,{base64.b64encode(self.png()).decode()}">'

    def figure(self, layer: int | None = None, head: int | None = None, *, cmap: str = "magma") -> "Figure":
        """A matplotlib figure: one heat map for each head of a layer (None: the last one), or for one head."""
        from matplotlib.figure import Figure

        layers = self.layers
        layer = max(layers) if layer is None else layer
        if layer not in layers:
            raise ValueError(f"[layer] is {layer}; the maps have the layers {sorted(layers)}.")
        info = self.info
        names = ["mean"] if info.first_head < 0 else [f"head {info.first_head + h}" for h in range(info.heads)]
        maps = list(zip(names, layers[layer]))
        if head is not None:
            if not 0 <= head < len(maps):
                raise ValueError(f"[head] is {head}; the maps have {len(maps)} heads.")
            maps = [maps[head]]
        columns = min(4, len(maps))
        rows = -(-len(maps) // columns)
        figure = Figure(figsize=(1.5 + 2.6 * columns, 1 + 2.4 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis in axes.flat[len(maps):]:
            axis.set_axis_off()
        picture = None
        for axis, (name, values) in zip(axes.flat, maps):
            picture = axis.imshow(values, vmin=0, vmax=1, cmap=cmap, aspect="auto", interpolation="nearest")
            axis.set_title(name, fontsize="small")
            for given, place in ((self.column_labels, axis.xaxis), (self.row_labels, axis.yaxis)):
                if given is not None:
                    place.set_ticks(range(len(given)), given, fontsize="x-small")
            axis.tick_params(axis="x", rotation=90)
        figure.colorbar(picture, ax=axes, label="attention weight")
        figure.suptitle(f"{info.kind} attention, layer {layer}")
        return figure


def attention_page(maps: Sequence[AttentionMaps], title: str | None = None) -> str:
    """Maps of several kinds as one page for a browser, complete in itself."""
    from .media import handle_array
    with Keep() as keep:
        return bytes_from("vkf_maps_html", handle_array(maps, "vkf_maps", keep), len(maps), title).decode()


def heat_map_png(values: ArrayLike, *, row_labels: Sequence[str] | None = None,
                 column_labels: Sequence[str] | None = None, **options: Any) -> bytes:
    """One matrix (T,S) as a PNG file. Options: cell_size, range, title, row_axis, column_axis."""
    with Keep() as keep:
        numbers, shape = floats_of(values, "values", keep)
        if len(shape) != 2:
            raise ValueError(f"[values] has the shape {shape}; a matrix is needed.")
        made = _c.sized("vkf_heat_map", values=numbers, rows=shape[0], columns=shape[1])
        for name, labels, count in (("row_labels", row_labels, shape[0]), ("column_labels", column_labels, shape[1])):
            if labels is not None:
                if len(labels) != count:
                    raise ValueError(f"[{name}] has {len(labels)} labels, and the matrix has {count}.")
                setattr(made, name, text_array(labels, name))
        return bytes_from("vkf_heat_map_png", ctypes.byref(made),
                          ctypes.byref(fill("vkf_view_options", options, keep, "heat_map_png()")))


def overlay_png(image: ImageLike, values: ArrayLike, **options: Any) -> bytes:
    """The image with red where weights (patch rows, patch columns) are high: a PNG file of its size.
    Options: zero_to_one, strength, and left, top, width and height of what the patches cover."""
    with Keep() as keep:
        numbers, shape = floats_of(values, "values", keep)
        if len(shape) != 2:
            raise ValueError(f"[values] has the shape {shape}; a weight for each row and column of patches is needed.")
        made = fill("vkf_overlay", {**options, "rows": shape[0], "columns": shape[1]}, keep, "overlay_png()")
        made.values = numbers
        return bytes_from("vkf_overlay_png", image_of(image), ctypes.byref(made))


@dataclass(frozen=True)
class Head:
    """How one head attends; see vkf_head of vkformer/c/attention_view.h. Entropies are in nats."""

    #: "usual", "collapsed" or "saturated".
    state: str
    layer: int
    head: int
    rows: int
    entropy: float
    most_entropy: float
    score_variance: float
    predicted_entropy: float


def measure_heads(passes: Sequence[tuple[AttentionMaps, Mapping[int, ArrayLike]]], **options: Any) -> list[Head]:
    """Judges every head over passes: maps of scores (run with scores=True), and the entropies of their
    layers (H,T) by number. Options: temperature, collapsed, saturated."""
    states = {_c.constants[f"VKF_HEAD_{name.upper()}"]: name for name in ("usual", "collapsed", "saturated")}
    with Keep() as keep:
        rows = []
        for maps, entropies in passes:
            layers = sorted(maps.layers)
            pointers = [floats_of(entropies[layer], f"entropies[{layer}]", keep)[0] for layer in layers]
            array = (ctypes.POINTER(ctypes.c_float) * max(len(pointers), 1))(*pointers)
            keep.append(array)
            row = _c.types["vkf_measured_pass"](keep.handle(maps, "vkf_maps", "passes"), array)
            rows.append(row)
        array = (_c.types["vkf_measured_pass"] * max(len(rows), 1))(*rows)
        made = fill("vkf_head_options", options, keep, "measure_heads()")
        heads = plain("vkf_heads", make("vkf_heads_measure", array, len(rows), ctypes.byref(made)))
    with heads:
        found = [read(get("vkf_heads_get", heads, i)) for i in range(call("vkf_heads_count", heads))]
    return [Head(**dict(row, state=states[row["state"]])) for row in found]


class MultiHeadAttention(Handle):
    """Multi-head attention (Vaswani et al. 2017) without any model. `weights` by the names that
    vkformer/attention.h has: "query.weight" (D,D) and so on. Options: d_model, heads, projection
    ("separate", "merged", "shared_by_heads"), causal, drop_weights."""

    _kind = "vkf_attention"

    def __init__(self, weights: Inputs, device: Device | None = None, **options: Any) -> None:
        with Keep() as keep:
            made = fill("vkf_attention_options", options, keep, "MultiHeadAttention()")
            self._adopt(make("vkf_attention_create", device or default_device(), ctypes.byref(made), tensors_of(weights)))

    def __call__(self, x: ArrayLike, key_mask: ArrayLike | None = None) -> Tensors:
        """x (B,T,D), and key_mask (B,T), nonzero = may be attended to. Gives "output" (B,T,D) and
        "weights" (B,H,T,T)."""
        given = {"x": x} if key_mask is None else {"x": x, "key_mask": key_mask}
        return Tensors._of(make("vkf_attention_run", self, tensors_of(given)))
