// Arrays by name.
using System;
using System.Collections.Generic;
using System.Linq;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Type of the elements of a tensor.</summary>
    public enum DType
    {
        F32 = Vkf.VKF_F32, F64 = Vkf.VKF_F64, F16 = Vkf.VKF_F16, BF16 = Vkf.VKF_BF16, I64 = Vkf.VKF_I64, I32 = Vkf.VKF_I32,
        I16 = Vkf.VKF_I16, I8 = Vkf.VKF_I8, U64 = Vkf.VKF_U64, U32 = Vkf.VKF_U32, U16 = Vkf.VKF_U16, U8 = Vkf.VKF_U8,
        Bool = Vkf.VKF_BOOL
    }

    /// <summary>Inputs and outputs of models and operators, by name, in host memory.</summary>
    public sealed unsafe class Tensors : NativeObject<VkfTensorsHandle>
    {
        private readonly object gate = new object();

        public Tensors()
        {
            VkfTensorsHandle made;
            Library.Check(Native.vkf_tensors_create(out made, Library.Error));
            Handle = made;
        }

        internal Tensors(VkfTensorsHandle handle) : base(handle) { }

        /// <summary>Every tensor of a safetensors file.</summary>
        public static Tensors Read(string path)
        {
            VkfTensorsHandle made;
            Library.Check(Native.vkf_tensors_read(Utf8.Needed(path, "path"), out made, Library.Error));
            return new Tensors(made);
        }

        /// <summary>Writes a safetensors file.</summary>
        public void Write(string path)
        {
            Library.Check(Native.vkf_tensors_write(Handle, Utf8.Needed(path, "path"), Library.Error));
        }

        public int Count { get { return (int)Native.vkf_tensors_count(Handle); } }
        /// <summary>Names, in order.</summary>
        public IReadOnlyList<string> Names
        {
            get { return Enumerable.Range(0, Count).Select(i => Utf8.Read(Native.vkf_tensors_name(Handle, (UIntPtr)i))).ToArray(); }
        }

        public void Set(string name, float[] values, params long[] shape) { Set(name, DType.F32, values, 4, shape); }
        public void Set(string name, long[] values, params long[] shape) { Set(name, DType.I64, values, 8, shape); }
        public void Set(string name, int[] values, params long[] shape) { Set(name, DType.I32, values, 4, shape); }
        public void Set(string name, byte[] values, params long[] shape) { Set(name, DType.U8, values, 1, shape); }

        private void Set(string name, DType type, Array values, int size, long[] shape)
        {
            if (values == null) throw new ArgumentNullException("values");
            if (shape == null || shape.Length == 0) shape = new[] { (long)values.Length };
            if (shape.Aggregate(1L, (a, b) => checked(a * b)) != values.Length)
            {
                throw new ArgumentException("[" + name + "] has " + values.Length + " elements, which do not fill the shape [" +
                                            string.Join(", ", shape) + "].");
            }
            using (var arena = new Arena())
            {
                var tensor = new vkf_tensor
                {
                    struct_size = (uint)sizeof(vkf_tensor), dtype = (int)type, shape = (long*)arena.Pin(shape),
                    rank = (UIntPtr)shape.Length, data = arena.Pin(values), bytes = (UIntPtr)((long)values.Length * size)
                };
                lock (gate) Library.Check(Native.vkf_tensors_set(Handle, Utf8.Needed(name, "name"), &tensor, Library.Error));
            }
        }

        private vkf_tensor Look(string name)
        {
            var tensor = new vkf_tensor { struct_size = (uint)sizeof(vkf_tensor) };
            Library.Check(Native.vkf_tensors_get(Handle, Utf8.Needed(name, "name"), &tensor, Library.Error));
            return tensor;
        }

        /// <summary>Elements in each dimension, slowest first.</summary>
        public long[] Shape(string name)
        {
            vkf_tensor tensor = Look(name);
            return Copy.Of(tensor.shape, (int)tensor.rank);
        }

        public DType ElementType(string name) { return (DType)Look(name).dtype; }

        /// <summary>A copy of a tensor of any float type, widened to f32.</summary>
        public float[] Floats(string name)
        {
            var values = new float[Elements(name)];
            fixed (float* at = values)
            {
                Library.Check(Native.vkf_tensors_get_floats(Handle, Utf8.Needed(name, "name"), at, (UIntPtr)values.Length, Library.Error));
            }
            return values;
        }

        /// <summary>A copy of integers or booleans.</summary>
        public long[] Ints(string name)
        {
            var values = new long[Elements(name)];
            fixed (long* at = values)
            {
                Library.Check(Native.vkf_tensors_get_ints(Handle, Utf8.Needed(name, "name"), at, (UIntPtr)values.Length, Library.Error));
            }
            return values;
        }

        /// <summary>Calls `use` with the elements where they lie, without a copy. They may not be kept.</summary>
        public TResult View<TElement, TResult>(string name, ViewFunction<TElement, TResult> use) where TElement : struct
        {
            bool done = false;
            Handle.DangerousAddRef(ref done);
            try
            {
                lock (gate)
                {
                    vkf_tensor tensor = Look(name);
                    Type stored = Stored((DType)tensor.dtype);
                    if (stored != typeof(TElement))
                    {
                        throw new ArgumentException("[" + name + "] has the dtype " + (DType)tensor.dtype + ", which is read as " + stored.Name +
                                                    ", not as " + typeof(TElement).Name + ".");
                    }
                    return use(new ReadOnlySpan<TElement>(tensor.data, checked((int)Elements(name))));
                }
            }
            finally { Handle.DangerousRelease(); }
        }

        private static Type Stored(DType type)
        {
            switch (type)
            {
                case DType.F32: return typeof(float);
                case DType.F64: return typeof(double);
                case DType.I64: return typeof(long);
                case DType.I32: return typeof(int);
                case DType.I16: return typeof(short);
                case DType.I8: return typeof(sbyte);
                case DType.U64: return typeof(ulong);
                case DType.U32: return typeof(uint);
                case DType.F16: case DType.BF16: case DType.U16: return typeof(ushort);
                default: return typeof(byte);
            }
        }

        private long Elements(string name) { return Shape(name).Aggregate(1L, (a, b) => checked(a * b)); }
    }

    public delegate TResult ViewFunction<TElement, TResult>(ReadOnlySpan<TElement> elements);
}
