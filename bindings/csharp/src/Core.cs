// What every class is made of: texts, memory for the time of a call, failures, objects of the library.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>What kind of failure it is; the numbers are those of the C interface.</summary>
    public enum Status
    {
        Ok = Vkf.VKF_OK,
        InvalidArgument = Vkf.VKF_INVALID_ARGUMENT,
        NotFound = Vkf.VKF_NOT_FOUND,
        InvalidFile = Vkf.VKF_INVALID_FILE,
        Unsupported = Vkf.VKF_UNSUPPORTED,
        OutOfMemory = Vkf.VKF_OUT_OF_MEMORY,
        DeviceLost = Vkf.VKF_DEVICE_LOST,
        Driver = Vkf.VKF_DRIVER,
        Cancelled = Vkf.VKF_CANCELLED,
        Internal = Vkf.VKF_INTERNAL,
        QueueFull = Vkf.VKF_QUEUE_FULL
    }

    /// <summary>A call failed. The message is one sentence with the value, the limit and what to do.</summary>
    public class VkformerException : Exception
    {
        public VkformerException(Status status, string message) : base(message) { Status = status; }
        public Status Status { get; private set; }
    }

    /// <summary>A callback used the object whose call it is part of.</summary>
    public sealed class BusyException : InvalidOperationException
    {
        public BusyException(string message) : base(message) { }
    }

    /// <summary>The library itself.</summary>
    public static class Library
    {
        /// <summary>"0.1.0".</summary>
        public static string Version { get { return Utf8.Read(Native.vkf_version_text()); } }
        /// <summary>The version of its C interface; Vkf.VKF_API_VERSION is this package's.</summary>
        public static int ApiVersion { get { return (int)Native.vkf_api_version(); } }

        [ThreadStatic] private static VkfErrorHandle error;

        internal static VkfErrorHandle Error
        {
            get
            {
                if (error == null) error = Native.vkf_error_create();
                if (error.IsInvalid) throw new OutOfMemoryException();
                return error;
            }
        }

        /// <summary>Throws if a call that was given Error failed.</summary>
        internal static void Check(int status)
        {
            if (status == Vkf.VKF_OK) return;
            string message = Utf8.Read(Native.vkf_error_message(Error));
            throw new VkformerException((Status)status, string.IsNullOrEmpty(message)
                ? Utf8.Read(Native.vkf_status_name(status)) : message);
        }
    }

    internal static unsafe class Utf8
    {
        private static readonly UTF8Encoding strict = new UTF8Encoding(false, true);

        /// <summary>With its zero byte; null stays null.</summary>
        public static byte[] Bytes(string text)
        {
            if (text == null) return null;
            int zero = text.IndexOf('\0');
            if (zero >= 0) throw new ArgumentException("A text holds a zero character at " + zero + ", where a text of C would end.");
            var bytes = new byte[strict.GetByteCount(text) + 1];
            strict.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        public static byte[] Needed(string text, string name)
        {
            if (text == null) throw new ArgumentNullException(name);
            return Bytes(text);
        }

        public static string Read(IntPtr text) { return Read((byte*)text); }

        public static string Read(byte* text)
        {
            if (text == null) return null;
            int length = 0;
            while (text[length] != 0) ++length;
            return System.Text.Encoding.UTF8.GetString(text, length);
        }

        public static string[] ReadAll(byte** texts, int count)
        {
            var all = new string[count];
            for (int i = 0; i < count; ++i) all[i] = Read(texts[i]);
            return all;
        }

        /// <summary>Takes over a text that a call made.</summary>
        public static string Take(VkfBytesHandle bytes)
        {
            using (bytes) return Read(Native.vkf_bytes_text(bytes));
        }

        public static byte[] TakeBytes(VkfBytesHandle bytes)
        {
            using (bytes) return Copy.Of((byte*)Native.vkf_bytes_data(bytes), (int)Native.vkf_bytes_size(bytes));
        }
    }

    internal static unsafe class Copy
    {
        public static byte[] Of(byte* from, int count)
        {
            var values = new byte[count];
            if (count > 0) Marshal.Copy((IntPtr)from, values, 0, count);
            return values;
        }

        public static int[] Of(int* from, int count)
        {
            var values = new int[count];
            if (count > 0) Marshal.Copy((IntPtr)from, values, 0, count);
            return values;
        }

        public static long[] Of(long* from, int count)
        {
            var values = new long[count];
            if (count > 0) Marshal.Copy((IntPtr)from, values, 0, count);
            return values;
        }

        public static float[] Of(float* from, int count)
        {
            var values = new float[count];
            if (count > 0) Marshal.Copy((IntPtr)from, values, 0, count);
            return values;
        }

        public static double[] Of(double* from, int count)
        {
            var values = new double[count];
            if (count > 0) Marshal.Copy((IntPtr)from, values, 0, count);
            return values;
        }
    }

    /// <summary>Memory and handles for the time of one call.</summary>
    internal sealed unsafe partial class Arena : IDisposable
    {
        private readonly List<IntPtr> blocks = new List<IntPtr>();
        private readonly List<SafeHandle> held = new List<SafeHandle>();
        private readonly List<GCHandle> pinned = new List<GCHandle>();

        public void* Room(long bytes)
        {
            IntPtr block = Marshal.AllocHGlobal((IntPtr)Math.Max(bytes, 1));
            blocks.Add(block);
            return (void*)block;
        }

        public byte* Text(string text)
        {
            byte[] bytes = Utf8.Bytes(text);
            if (bytes == null) return null;
            var at = (byte*)Room(bytes.Length);
            Marshal.Copy(bytes, 0, (IntPtr)at, bytes.Length);
            return at;
        }

        public byte** Texts(IReadOnlyList<string> texts)
        {
            if (texts == null) throw new ArgumentNullException("texts");
            var at = (byte**)Room(texts.Count * sizeof(byte*));
            for (int i = 0; i < texts.Count; ++i)
            {
                if (texts[i] == null) throw new ArgumentException("Text " + i + " is null.");
                at[i] = Text(texts[i]);
            }
            return at;
        }

        public vkf_ids Ids(long[] ids)
        {
            if (ids == null) throw new ArgumentNullException("ids");
            return new vkf_ids { ids = (long*)Pin(ids), count = (UIntPtr)ids.Length };
        }

        public vkf_ids* IdRows(IReadOnlyList<long[]> rows)
        {
            var at = (vkf_ids*)Room(rows.Count * sizeof(vkf_ids));
            for (int i = 0; i < rows.Count; ++i) at[i] = Ids(rows[i]);
            return at;
        }

        public vkf_token_bias* Biases(TokenBias[] biases)
        {
            var at = (vkf_token_bias*)Room(biases.Length * sizeof(vkf_token_bias));
            for (int i = 0; i < biases.Length; ++i)
            {
                at[i] = new vkf_token_bias { tokens = Ids(biases[i].Tokens), bias = biases[i].Bias };
            }
            return at;
        }

        /// <summary>The place of an array, which the collector does not move meanwhile.</summary>
        public void* Pin(Array values)
        {
            GCHandle pin = GCHandle.Alloc(values, GCHandleType.Pinned);
            pinned.Add(pin);
            return values.Length == 0 ? Room(1) : (void*)pin.AddrOfPinnedObject();
        }

        /// <summary>The pointer of a handle that nobody frees meanwhile.</summary>
        public IntPtr Hold(SafeHandle handle)
        {
            if (handle == null) throw new ArgumentNullException("handle");
            bool done = false;
            handle.DangerousAddRef(ref done);
            held.Add(handle);
            return handle.DangerousGetHandle();
        }

        /// <summary>The same, or nothing.</summary>
        public IntPtr HoldIfAny(SafeHandle handle) { return handle == null ? IntPtr.Zero : Hold(handle); }

        public IntPtr* Handles<T>(IReadOnlyList<T> handles) where T : SafeHandle
        {
            var at = (IntPtr*)Room(handles.Count * sizeof(IntPtr));
            for (int i = 0; i < handles.Count; ++i) at[i] = Hold(handles[i]);
            return at;
        }

        public void Dispose()
        {
            foreach (SafeHandle handle in held) handle.DangerousRelease();
            foreach (GCHandle pin in pinned) pin.Free();
            foreach (IntPtr block in blocks) Marshal.FreeHGlobal(block);
            held.Clear();
            pinned.Clear();
            blocks.Clear();
            GC.SuppressFinalize(this);
        }

        ~Arena() { Dispose(); }
    }

    /// <summary>Added to the score of the last token wherever the others come right before it.</summary>
    public struct TokenBias
    {
        public long[] Tokens;
        /// <summary>Negative infinity forbids it.</summary>
        public double Bias;
    }

    /// <summary>One thread at a time, of objects that ask for it; a callback may not come back in.</summary>
    internal sealed class Turn
    {
        private readonly object gate = new object();
        private bool busy;

        public T Take<T>(Func<T> call)
        {
            lock (gate)
            {
                if (busy) throw new BusyException("The object is in use by the call that this callback belongs to. Use it after that call has returned.");
                busy = true;
                try { return call(); }
                finally { busy = false; }
            }
        }
    }

    /// <summary>Something that a callback of C belongs to, and what went wrong in it.</summary>
    internal sealed class Caught : IDisposable
    {
        private GCHandle self;
        public Exception Failure;
        public object Target;

        public Caught(object target) { Target = target; self = GCHandle.Alloc(this); }
        public IntPtr Pointer { get { return GCHandle.ToIntPtr(self); } }
        public static Caught Of(IntPtr data) { return (Caught)GCHandle.FromIntPtr(data).Target; }

        /// <summary>Throws what a callback threw, in place of what the call then said.</summary>
        public void Rethrow()
        {
            if (Failure != null) System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(Failure).Throw();
        }

        public void Dispose() { if (self.IsAllocated) self.Free(); }
    }

    /// <summary>Ahead-of-time compilers (IL2CPP, Mono AOT) look for an attribute of this name.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { Type = type; }
        public Type Type { get; private set; }
    }

    /// <summary>An object of the library. Objects keep alive what they were made from: dispose of them in any
    /// order. Calls from several threads are safe.</summary>
    public abstract class NativeObject<T> : IDisposable where T : SafeHandle
    {
        protected NativeObject() { }
        protected NativeObject(T handle) { Handle = handle; }
        /// <summary>For Vkformer.Interop.Native.</summary>
        public T Handle { get; protected set; }
        public bool IsDisposed { get { return Handle == null || Handle.IsClosed; } }
        public void Dispose()
        {
            if (Handle != null) Handle.Dispose();
        }
    }
}
