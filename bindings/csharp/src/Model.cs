// Model directories, models, sessions.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>What a model directory holds.</summary>
    public static unsafe class Directories
    {
        /// <summary>Reads and checks a model directory, without a device.</summary>
        public static ModelInfo Describe(string path)
        {
            VkfDescriptionHandle description;
            Library.Check(Native.vkf_describe_directory(Utf8.Needed(path, "path"), out description, Library.Error));
            return Read(description);
        }

        internal static ModelInfo Read(VkfDescriptionHandle description)
        {
            using (description)
            {
                var info = new vkf_model_info { struct_size = (uint)sizeof(vkf_model_info) };
                Library.Check(Native.vkf_description_get(description, &info, Library.Error));
                return ModelInfo.Of(&info);
            }
        }

        /// <summary>What the models of each family can do.</summary>
        public static IReadOnlyList<Family> Families()
        {
            VkfFamiliesHandle found;
            Library.Check(Native.vkf_families_list(out found, Library.Error));
            using (found)
            {
                var all = new List<Family>();
                for (ulong i = 0; i < (ulong)Native.vkf_families_count(found); ++i)
                {
                    var family = new vkf_family { struct_size = (uint)sizeof(vkf_family) };
                    Library.Check(Native.vkf_families_get(found, (UIntPtr)i, &family, Library.Error));
                    all.Add(Family.Of(&family));
                }
                return all;
            }
        }
    }

    /// <summary>Where a model's files come from: a directory, or their bytes by name.</summary>
    public sealed unsafe class Source : NativeObject<VkfSourceHandle>
    {
        // The library refers to the bytes until a model is loaded; the collector frees them after that.
        private readonly Arena arena = new Arena();

        public Source(string directory)
        {
            VkfSourceHandle made;
            Library.Check(Native.vkf_source_directory(Utf8.Needed(directory, "directory"), out made, Library.Error));
            Handle = made;
        }

        public Source(IReadOnlyDictionary<string, byte[]> files, string name = "memory")
        {
            var rows = (vkf_file*)arena.Room(files.Count * sizeof(vkf_file));
            int count = 0;
            foreach (KeyValuePair<string, byte[]> file in files)
            {
                rows[count++] = new vkf_file { name = arena.Text(file.Key), data = arena.Pin(file.Value), size = (UIntPtr)file.Value.Length };
            }
            VkfSourceHandle made;
            Library.Check(Native.vkf_source_memory(rows, (UIntPtr)count, Utf8.Bytes(name), out made, Library.Error));
            Handle = made;
        }
    }

    /// <summary>A model on a device. It never changes: sessions on any threads may share one.</summary>
    public sealed unsafe class Model : NativeObject<VkfModelHandle>
    {
        public Model(Device device, string directory, ModelOptions options = null, Func<ulong, ulong, bool> progress = null)
            : this(device, directory, null, options, progress) { }

        public Model(Device device, Source source, ModelOptions options = null, Func<ulong, ulong, bool> progress = null)
            : this(device, null, source, options, progress) { }

        private Model(Device device, string directory, Source source, ModelOptions options, Func<ulong, ulong, bool> progress)
        {
            if (device == null) throw new ArgumentNullException("device");
            if (directory == null && source == null) throw new ArgumentNullException(source == null ? "directory" : "source");
            using (var arena = new Arena())
            using (var caught = new Caught(progress))
            {
                vkf_model_options* given = arena.Put((options ?? new ModelOptions()).Fill(arena));
                if (progress != null)
                {
                    given->progress = Marshal.GetFunctionPointerForDelegate(forward);
                    given->progress_data = (void*)caught.Pointer;
                }
                VkfModelHandle made;
                int status = directory != null
                    ? Native.vkf_model_load(device.Handle, Utf8.Bytes(directory), given, out made, Library.Error)
                    : Native.vkf_model_load_from(device.Handle, source.Handle, given, out made, Library.Error);
                caught.Rethrow();
                Library.Check(status);
                Handle = made;
            }
            GC.KeepAlive(source);
        }

        private static readonly vkf_model_options_progress forward = Progress;

        [MonoPInvokeCallback(typeof(vkf_model_options_progress))]
        private static int Progress(void* data, ulong loaded, ulong total)
        {
            Caught caught = Caught.Of((IntPtr)data);
            try { return ((Func<ulong, ulong, bool>)caught.Target)(loaded, total) ? 1 : 0; }
            catch (Exception failure) { caught.Failure = failure; return 0; }
        }

        public ModelInfo Info
        {
            get
            {
                VkfDescriptionHandle description;
                Library.Check(Native.vkf_model_describe(Handle, out description, Library.Error));
                return Directories.Read(description);
            }
        }

        /// <summary>Bytes of device memory that the weights take.</summary>
        public ulong WeightBytes { get { return Native.vkf_model_weight_bytes(Handle); } }
    }

    /// <summary>Gets tokens while they come; false ends the text, an exception ends the call.</summary>
    public delegate bool OnToken(int input, int sequence, long id, double logProbability);

    /// <summary>Runs a model. Several threads may call it; one runs at a time.</summary>
    public sealed unsafe class Session : NativeObject<VkfSessionHandle>
    {
        private readonly Turn turn = new Turn();

        public Session(Model model, SessionOptions options = null)
        {
            if (model == null) throw new ArgumentNullException("model");
            using (var arena = new Arena())
            {
                VkfSessionHandle made;
                Library.Check(Native.vkf_session_create(model.Handle, arena.Put((options ?? new SessionOptions()).Fill(arena)), out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>One full pass: arrays by name in, arrays by name out.</summary>
        public Tensors Run(Tensors inputs, RunOptions options = null)
        {
            if (inputs == null) throw new ArgumentNullException("inputs");
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    VkfTensorsHandle outputs;
                    Library.Check(Native.vkf_session_run(Handle, inputs.Handle, arena.Put((options ?? new RunOptions()).Fill(arena)), out outputs, Library.Error));
                    return new Tensors(outputs);
                }
            });
        }

        /// <summary>Generates from rows of token ids; the sequences of each, best first.</summary>
        public Sequence[][] Generate(IReadOnlyList<long[]> rows, GenerateOptions options = null, OnToken onToken = null)
        {
            if (rows == null) throw new ArgumentNullException("rows");
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                using (var caught = new Caught(onToken))
                {
                    vkf_generate_options* given = arena.Put((options ?? new GenerateOptions()).Fill(arena));
                    if (onToken != null)
                    {
                        given->on_token = Marshal.GetFunctionPointerForDelegate(forward);
                        given->on_token_user = (void*)caught.Pointer;
                    }
                    VkfGenerationHandle generation;
                    int status = Native.vkf_session_generate(Handle, arena.IdRows(rows), (UIntPtr)rows.Count, given, out generation, Library.Error);
                    caught.Rethrow();
                    Library.Check(status);
                    using (generation) return Read(generation);
                }
            });
        }

        private static Sequence[][] Read(VkfGenerationHandle generation)
        {
            var all = new Sequence[(int)Native.vkf_generation_inputs(generation)][];
            for (int i = 0; i < all.Length; ++i)
            {
                all[i] = new Sequence[(int)Native.vkf_generation_count(generation, (UIntPtr)i)];
                for (int k = 0; k < all[i].Length; ++k)
                {
                    var one = new vkf_sequence { struct_size = (uint)sizeof(vkf_sequence) };
                    Library.Check(Native.vkf_generation_get(generation, (UIntPtr)i, (UIntPtr)k, &one, Library.Error));
                    all[i][k] = Sequence.Of(&one);
                }
            }
            return all;
        }

        private static readonly vkf_on_token forward = Forward;

        [MonoPInvokeCallback(typeof(vkf_on_token))]
        private static int Forward(void* user, UIntPtr input, UIntPtr sequence, long id, double logProbability)
        {
            Caught caught = Caught.Of((IntPtr)user);
            try { return ((OnToken)caught.Target)((int)input, (int)sequence, id, logProbability) ? Vkf.VKF_GO_ON : Vkf.VKF_END_TEXT; }
            catch (Exception failure) { caught.Failure = failure; return Vkf.VKF_CANCEL_GENERATION; }
        }

        /// <summary>Begins a pass within the budget of frames, which Advance carries out.</summary>
        public void Start(Tensors inputs, RunOptions options = null)
        {
            turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    Library.Check(Native.vkf_session_start(Handle, inputs.Handle, arena.Put((options ?? new RunOptions()).Fill(arena)), Library.Error));
                    return 0;
                }
            });
        }

        /// <summary>Begins a generation within the budget of frames, which Advance carries out.</summary>
        public void StartGeneration(Tensors inputs, GenerateOptions options = null)
        {
            turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    Library.Check(Native.vkf_session_start_generation(Handle, inputs.Handle, arena.Put((options ?? new GenerateOptions()).Fill(arena)), Library.Error));
                    return 0;
                }
            });
        }

        /// <summary>Submits the next slice of that GPU time and does not wait for it; call it once a frame.</summary>
        public Advance Advance(double microseconds)
        {
            return turn.Take(() =>
            {
                var options = new vkf_slice_options { struct_size = (uint)sizeof(vkf_slice_options), microseconds = microseconds };
                var advance = new vkf_advance { struct_size = (uint)sizeof(vkf_advance) };
                Library.Check(Native.vkf_session_advance(Handle, &options, &advance, Library.Error));
                return Vkformer.Advance.Of(&advance);
            });
        }

        /// <summary>Outputs of the pass that was started; waits for the GPU.</summary>
        public Tensors Finish()
        {
            return turn.Take(() =>
            {
                VkfTensorsHandle outputs;
                Library.Check(Native.vkf_session_finish(Handle, out outputs, Library.Error));
                return new Tensors(outputs);
            });
        }

        /// <summary>Sequences of the generation that was started; waits for the GPU.</summary>
        public Sequence[][] FinishGeneration()
        {
            return turn.Take(() =>
            {
                VkfGenerationHandle generation;
                Library.Check(Native.vkf_session_finish_generation(Handle, out generation, Library.Error));
                using (generation) return Read(generation);
            });
        }

        /// <summary>Gives up what was started.</summary>
        public void Cancel()
        {
            turn.Take(() => { Library.Check(Native.vkf_session_cancel(Handle, Library.Error)); return 0; });
        }
    }
}
