// Maps of attention, and multi-head attention without a model.
using System;
using System.Collections.Generic;
using System.Linq;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Attention of one kind ("self", "encoder", "decoder", "cross"), of one item of a batch, from the outputs
    /// of Session.Run with Vkf.VKF_RUN_ATTENTIONS.</summary>
    public sealed unsafe class AttentionMaps : NativeObject<VkfMapsHandle>
    {
        private readonly object gate = new object();

        public AttentionMaps(Tensors outputs, string kind, long item = 0)
        {
            if (outputs == null) throw new ArgumentNullException("outputs");
            VkfMapsHandle made;
            Library.Check(Native.vkf_maps_from(outputs.Handle, Utf8.Needed(kind, "kind"), item, out made, Library.Error));
            Handle = made;
        }

        private AttentionMaps(VkfMapsHandle handle) : base(handle) { }

        /// <summary>The mean over heads.</summary>
        public AttentionMaps Mean()
        {
            VkfMapsHandle made;
            Library.Check(Native.vkf_maps_mean(Handle, out made, Library.Error));
            return new AttentionMaps(made);
        }

        /// <summary>Attention rollout (Abnar and Zuidema 2020).</summary>
        public AttentionMaps Rollout()
        {
            VkfMapsHandle made;
            Library.Check(Native.vkf_maps_rollout(Handle, out made, Library.Error));
            return new AttentionMaps(made);
        }

        public MapsInfo Info
        {
            get
            {
                var info = new vkf_maps_info { struct_size = (uint)sizeof(vkf_maps_info) };
                Library.Check(Native.vkf_maps_get(Handle, &info, Library.Error));
                return MapsInfo.Of(&info);
            }
        }

        /// <summary>Names the tokens: as many as there are rows and columns, or null for numbers.</summary>
        public void SetLabels(IReadOnlyList<string> rows, IReadOnlyList<string> columns)
        {
            MapsInfo info = Info;
            if (rows != null && rows.Count != info.Rows) throw new ArgumentException("There are " + rows.Count + " labels for " + info.Rows + " rows.");
            if (columns != null && columns.Count != info.Columns) throw new ArgumentException("There are " + columns.Count + " labels for " + info.Columns + " columns.");
            using (var arena = new Arena())
            {
                lock (gate)
                {
                    Library.Check(Native.vkf_maps_set_labels(Handle, rows == null ? null : arena.Texts(rows),
                                                             columns == null ? null : arena.Texts(columns), Library.Error));
                }
            }
        }

        /// <summary>A copy of the weights (heads, rows, columns) of the layer at an index; `layer` is its number.</summary>
        public float[] Layer(int index, out int layer)
        {
            MapsInfo info = Info;
            int number;
            float* values;
            Library.Check(Native.vkf_maps_get_layer(Handle, (UIntPtr)index, &number, &values, Library.Error));
            layer = number;
            float[] copy = Copy.Of(values, checked(info.Heads * info.Rows * info.Columns));
            GC.KeepAlive(this);
            return copy;
        }

        /// <summary>All maps as one picture of small heat maps: a PNG file.</summary>
        public byte[] ToPng(ViewOptions options = null)
        {
            using (var arena = new Arena())
            {
                VkfBytesHandle png;
                Library.Check(Native.vkf_maps_grid_png(Handle, arena.Put((options ?? new ViewOptions()).Fill(arena)), out png, Library.Error));
                return Utf8.TakeBytes(png);
            }
        }

        /// <summary>Maps of several kinds as one page for a browser, complete in itself.</summary>
        public static string ToHtml(IReadOnlyList<AttentionMaps> maps, string title = null)
        {
            if (maps == null) throw new ArgumentNullException("maps");
            using (var arena = new Arena())
            {
                VkfBytesHandle page;
                Library.Check(Native.vkf_maps_html(arena.Handles(maps.Select(one => one.Handle).ToArray()), (UIntPtr)maps.Count, Utf8.Bytes(title), out page, Library.Error));
                return Utf8.Take(page);
            }
        }

        /// <summary>One matrix, row by row, as a PNG file.</summary>
        public static byte[] HeatMap(float[] values, int rows, int columns, ViewOptions options = null)
        {
            if (values == null) throw new ArgumentNullException("values");
            if ((long)rows * columns != values.Length) throw new ArgumentException(values.Length + " values do not fill " + rows + " x " + columns + ".");
            using (var arena = new Arena())
            {
                var map = new vkf_heat_map { struct_size = (uint)sizeof(vkf_heat_map), values = (float*)arena.Pin(values), rows = rows, columns = columns };
                VkfBytesHandle png;
                Library.Check(Native.vkf_heat_map_png(&map, arena.Put((options ?? new ViewOptions()).Fill(arena)), out png, Library.Error));
                return Utf8.TakeBytes(png);
            }
        }

        /// <summary>The image with red where the weights of patches are high: a PNG file of its size.</summary>
        public static byte[] Overlay(Image image, float[] values, int rows, int columns)
        {
            if (image == null) throw new ArgumentNullException("image");
            if (values == null) throw new ArgumentNullException("values");
            if ((long)rows * columns != values.Length) throw new ArgumentException(values.Length + " values do not fill " + rows + " x " + columns + ".");
            using (var arena = new Arena())
            {
                var overlay = new vkf_overlay { struct_size = (uint)sizeof(vkf_overlay), values = (float*)arena.Pin(values), rows = rows, columns = columns };
                VkfBytesHandle png;
                Library.Check(Native.vkf_overlay_png(image.Handle, &overlay, out png, Library.Error));
                return Utf8.TakeBytes(png);
            }
        }

        /// <summary>Judges every head of one pass: maps of scores (Vkf.VKF_RUN_SCORES), and the entropies of their layers (H,T).</summary>
        public static IReadOnlyList<Head> Measure(AttentionMaps scores, IReadOnlyList<float[]> entropies, HeadOptions options = null)
        {
            if (scores == null) throw new ArgumentNullException("scores");
            MapsInfo info = scores.Info;
            if (entropies.Count != info.Layers || entropies.Any(one => one.Length != info.Heads * info.Rows))
            {
                throw new ArgumentException("The entropies must be " + info.Layers + " arrays of " + info.Heads * info.Rows + " numbers.");
            }
            using (var arena = new Arena())
            {
                var layers = (float**)arena.Room(entropies.Count * sizeof(float*));
                for (int i = 0; i < entropies.Count; ++i) layers[i] = (float*)arena.Pin(entropies[i]);
                var pass = new vkf_measured_pass { scores = arena.Hold(scores.Handle), entropies = layers };
                VkfHeadsHandle heads;
                Library.Check(Native.vkf_heads_measure(&pass, (UIntPtr)1, arena.Put((options ?? new HeadOptions()).Fill(arena)), out heads, Library.Error));
                using (heads)
                {
                    var all = new List<Head>();
                    for (ulong i = 0; i < (ulong)Native.vkf_heads_count(heads); ++i)
                    {
                        var one = new vkf_head { struct_size = (uint)sizeof(vkf_head) };
                        Library.Check(Native.vkf_heads_get(heads, (UIntPtr)i, &one, Library.Error));
                        all.Add(Head.Of(&one));
                    }
                    return all;
                }
            }
        }
    }

    /// <summary>Multi-head attention (Vaswani et al. 2017) without any model.</summary>
    public sealed unsafe class MultiHeadAttention : NativeObject<VkfAttentionHandle>
    {
        /// <summary>`weights` by the names that vkformer/attention.h has: "query.weight" (D,D) and so on.</summary>
        public MultiHeadAttention(Device device, Tensors weights, AttentionOptions options)
        {
            using (var arena = new Arena())
            {
                VkfAttentionHandle made;
                Library.Check(Native.vkf_attention_create(device.Handle, arena.Put(options.Fill(arena)), weights.Handle, out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>"x" (B,T,D) and "key_mask" (B,T) or none; gives "output" and "weights".</summary>
        public Tensors Run(Tensors inputs)
        {
            VkfTensorsHandle outputs;
            Library.Check(Native.vkf_attention_run(Handle, inputs.Handle, out outputs, Library.Error));
            return new Tensors(outputs);
        }
    }
}
