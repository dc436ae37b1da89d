// Models that load beside the program, what they will need, and smaller copies of them.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>A model that loads on a thread of the library's.</summary>
    public sealed unsafe class Load : NativeObject<VkfLoadHandle>
    {
        private readonly Source source;

        public Load(Device device, Source source, ModelOptions options = null)
        {
            if (device == null) throw new ArgumentNullException("device");
            if (source == null) throw new ArgumentNullException("source");
            this.source = source;  // its bytes are read meanwhile
            using (var arena = new Arena())
            {
                VkfLoadHandle made;
                Library.Check(Native.vkf_load_start(device.Handle, source.Handle, arena.Put((options ?? new ModelOptions()).Fill(arena)), out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>Bytes so far; `total` is 0 until it is known.</summary>
        public ulong Progress(out ulong total)
        {
            ulong loaded, all;
            Library.Check(Native.vkf_load_progress(Handle, &loaded, &all, Library.Error));
            total = all;
            return loaded;
        }

        public bool Done { get { return Native.vkf_load_done(Handle) != 0; } }
        /// <summary>Of a load with Paced 1, once a frame: how long weights may be copied.</summary>
        public void Advance(double microseconds) { Native.vkf_load_advance(Handle, microseconds); }
        /// <summary>Asks to stop; Wait then throws, unless loading was over already.</summary>
        public void Cancel() { Native.vkf_load_cancel(Handle); }

        /// <summary>The model, or the exception that says why there is none.</summary>
        public Model Wait()
        {
            VkfModelHandle model;
            Library.Check(Native.vkf_load_wait(Handle, out model, Library.Error));
            return new Model(model, source);
        }

        /// <summary>The same as a task; the token cancels loading.</summary>
        public Task<Model> WaitAsync(CancellationToken cancellation = default(CancellationToken))
        {
            CancellationTokenRegistration registration = cancellation.Register(Cancel);
            return Task.Factory.StartNew(() =>
            {
                try { return Wait(); }
                finally { registration.Dispose(); }
            }, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);
        }
    }

    public static unsafe partial class Directories
    {
        /// <summary>What a model and one session will hold, without loading it.</summary>
        public static MemoryNeeds Needs(Device device, Source source, SessionSizes sizes = null, ModelOptions options = null)
        {
            using (var arena = new Arena())
            {
                var needs = new vkf_memory_needs { struct_size = (uint)sizeof(vkf_memory_needs) };
                Library.Check(Native.vkf_model_memory_needs(device.Handle, source.Handle, arena.Put((options ?? new ModelOptions()).Fill(arena)),
                    arena.Put((sizes ?? new SessionSizes()).Fill(arena)), &needs, Library.Error));
                return MemoryNeeds.Of(&needs);
            }
        }

        /// <summary>Writes the model of a directory, with smaller matrices, into the directory `target`.</summary>
        public static QuantizeReport Quantize(string model, string target, QuantizeOptions options = null)
        {
            using (var arena = new Arena())
            {
                var report = new vkf_quantize_report { struct_size = (uint)sizeof(vkf_quantize_report) };
                Library.Check(Native.vkf_quantize_model(Utf8.Needed(model, "model"), Utf8.Needed(target, "target"),
                    arena.Put((options ?? new QuantizeOptions()).Fill(arena)), &report, Library.Error));
                return QuantizeReport.Of(&report);
            }
        }

        /// <summary>Writes a model, a directory or a GGUF file, as the GGUF file `target`.</summary>
        public static QuantizeReport WriteGguf(string model, string target, GgufOptions options = null)
        {
            using (var arena = new Arena())
            {
                var report = new vkf_quantize_report { struct_size = (uint)sizeof(vkf_quantize_report) };
                Library.Check(Native.vkf_write_gguf(Utf8.Needed(model, "model"), Utf8.Needed(target, "target"),
                    arena.Put((options ?? new GgufOptions()).Fill(arena)), &report, Library.Error));
                return QuantizeReport.Of(&report);
            }
        }

        /// <summary>Writes a model as one file, which Source.Pack loads, from a place in an archive, too.</summary>
        public static PackReport Pack(string model, string target, PackOptions options = null)
        {
            using (var arena = new Arena())
            {
                var report = new vkf_pack_report { struct_size = (uint)sizeof(vkf_pack_report) };
                Library.Check(Native.vkf_pack_model(Utf8.Needed(model, "model"), Utf8.Needed(target, "target"),
                    arena.Put((options ?? new PackOptions()).Fill(arena)), &report, Library.Error));
                return PackReport.Of(&report);
            }
        }
    }
}
