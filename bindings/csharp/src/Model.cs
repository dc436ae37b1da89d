// Model directories, models, sessions.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>What a model directory holds.</summary>
    public static unsafe partial class Directories
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
            using (description) return ReadInfo(description);
        }

        private static ModelInfo ReadInfo(VkfDescriptionHandle description)
        {
            var info = new vkf_model_info { struct_size = (uint)sizeof(vkf_model_info) };
            Library.Check(Native.vkf_description_get(description, &info, Library.Error));
            return ModelInfo.Of(&info);
        }

        /// <summary>The tensors of a model directory's checkpoint.</summary>
        public static IReadOnlyList<TensorInfo> Tensors(string path)
        {
            VkfDescriptionHandle description;
            Library.Check(Native.vkf_describe_directory(Utf8.Needed(path, "path"), out description, Library.Error));
            using (description)
            {
                var all = new List<TensorInfo>();
                for (long i = 0; i < ReadInfo(description).TensorCount; ++i)
                {
                    var one = new vkf_tensor_info { struct_size = (uint)sizeof(vkf_tensor_info) };
                    Library.Check(Native.vkf_description_get_tensor(description, (UIntPtr)i, &one, Library.Error));
                    all.Add(TensorInfo.Of(&one));
                }
                return all;
            }
        }

        /// <summary>Tokens that GenerateOptions.DecoderPrompt can hold, by name: languages, tasks.</summary>
        public static IReadOnlyDictionary<string, long> PromptTokens(string path)
        {
            VkfDescriptionHandle description;
            Library.Check(Native.vkf_describe_directory(Utf8.Needed(path, "path"), out description, Library.Error));
            using (description)
            {
                var all = new Dictionary<string, long>();
                for (long i = 0; i < ReadInfo(description).PromptTokenCount; ++i)
                {
                    byte* name;
                    long id;
                    Library.Check(Native.vkf_description_get_prompt_token(description, (UIntPtr)i, &name, &id, Library.Error));
                    all[Utf8.Read(name)] = id;
                }
                return all;
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

    /// <summary>The host's own files, read by the thread that loads.</summary>
    public interface IFileReader
    {
        /// <summary>A file's bytes; -1 if there is none of that name.</summary>
        long Size(string name);
        /// <summary>Fills `target` with the file's bytes from `offset` on.</summary>
        void Read(string name, ulong offset, Span<byte> target);
    }

    /// <summary>Where a model's files come from: a directory, their bytes by name, or an IFileReader.</summary>
    public sealed unsafe class Source : NativeObject<VkfSourceHandle>
    {
        private readonly Caught caught;  // of the reader

        public Source(IFileReader reader, string name = "reader")
        {
            if (reader == null) throw new ArgumentNullException("reader");
            caught = new Caught(reader);
            var given = new vkf_file_reader
            {
                struct_size = (uint)sizeof(vkf_file_reader), size = Marshal.GetFunctionPointerForDelegate(forwardSize),
                read = Marshal.GetFunctionPointerForDelegate(forwardRead), data = (void*)caught.Pointer
            };
            VkfSourceHandle made;
            Library.Check(Native.vkf_source_reader(&given, Utf8.Bytes(name), out made, Library.Error));
            Handle = made;
        }

        /// <summary>What the reader threw last, or null.</summary>
        public Exception Failure { get { return caught == null ? null : caught.Failure; } }

        private static readonly vkf_file_reader_size forwardSize = ForwardSize;
        private static readonly vkf_file_reader_read forwardRead = ForwardRead;

        [MonoPInvokeCallback(typeof(vkf_file_reader_size))]
        private static int ForwardSize(void* data, byte* name, ulong* size)
        {
            Caught caught = Caught.Of((IntPtr)data);
            try
            {
                long found = ((IFileReader)caught.Target).Size(Utf8.Read(name));
                if (found < 0) return 0;
                *size = (ulong)found;
                return 1;
            }
            catch (Exception failure) { caught.Failure = failure; return 0; }
        }

        [MonoPInvokeCallback(typeof(vkf_file_reader_read))]
        private static int ForwardRead(void* data, byte* name, ulong offset, void* target, UIntPtr bytes)
        {
            Caught caught = Caught.Of((IntPtr)data);
            try
            {
                // A span has at most 2^31 - 1 elements.
                ulong done = 0;
                while (done < (ulong)bytes)
                {
                    int some = (int)Math.Min((ulong)bytes - done, 1u << 30);
                    ((IFileReader)caught.Target).Read(Utf8.Read(name), offset + done, new Span<byte>((byte*)target + done, some));
                    done += (ulong)some;
                }
                return 1;
            }
            catch (Exception failure) { caught.Failure = failure; return 0; }
        }

        ~Source() { if (caught != null) caught.Dispose(); }


        // The library refers to the bytes while a model is loaded, and models with adapters later. The collector frees them after that.
        private readonly Arena arena = new Arena();

        public Source(string directory)
        {
            VkfSourceHandle made;
            Library.Check(Native.vkf_source_directory(Utf8.Needed(directory, "directory"), out made, Library.Error));
            Handle = made;
        }

        private Source(VkfSourceHandle handle) : base(handle) { }

        /// <summary>A packed model (`vkformer pack`): the file from the byte `offset` on.</summary>
        public static Source Pack(string path, ulong offset = 0)
        {
            VkfSourceHandle made;
            Library.Check(Native.vkf_source_pack(Utf8.Needed(path, "path"), offset, out made, Library.Error));
            return new Source(made);
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
        // Other scales of adapters are computed from the bytes that it was loaded from.
        private readonly Source source;

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
            this.source = source;
        }

        internal Model(VkfModelHandle handle, Source source) : base(handle) { this.source = source; }

        /// <summary>The plan of a pass in words.</summary>
        public string Plan(PlanOptions options = null)
        {
            using (var arena = new Arena())
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_model_plan(Handle, arena.Put((options ?? new PlanOptions()).Fill(arena)), out text, Library.Error));
                return Utf8.Take(text);
            }
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

        /// <summary>Who of a group has which layers, a line a device; empty on one device.</summary>
        public string GroupPlan
        {
            get
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_model_group_plan(Handle, out text, Library.Error));
                return Utf8.Take(text);
            }
        }

        /// <summary>Other scales for the adapters that it was loaded with, in their order; 0 leaves one out.</summary>
        public void SetAdapterScales(float[] scales)
        {
            if (scales == null) throw new ArgumentNullException("scales");
            fixed (float* first = scales)
                Library.Check(Native.vkf_model_set_adapter_scales(Handle, first, (UIntPtr)scales.Length, Library.Error));
            GC.KeepAlive(source);
        }
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

        /// <summary>Generates from tensors by name.</summary>
        public Sequence[][] Generate(Tensors inputs, GenerateOptions options = null)
        {
            if (inputs == null) throw new ArgumentNullException("inputs");
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    VkfGenerationHandle generation;
                    Library.Check(Native.vkf_session_generate_from(Handle, inputs.Handle, arena.Put((options ?? new GenerateOptions()).Fill(arena)), out generation, Library.Error));
                    using (generation) return Read(generation);
                }
            });
        }

        /// <summary>Log-probabilities that the model gives the tokens of a continuation after an input.</summary>
        public float[] Score(long[] input, long[] continuation)
        {
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    vkf_ids first = arena.Ids(input), second = arena.Ids(continuation);
                    VkfTensorsHandle made;
                    Library.Check(Native.vkf_session_score(Handle, &first, &second, out made, Library.Error));
                    using (var tensors = new Tensors(made)) return tensors.Floats("log_probabilities");
                }
            });
        }

        /// <summary>What the last generation took.</summary>
        public GenerationCounters Counters
        {
            get
            {
                return turn.Take(() =>
                {
                    var counters = new vkf_generation_counters { struct_size = (uint)sizeof(vkf_generation_counters) };
                    Library.Check(Native.vkf_session_counters(Handle, &counters, Library.Error));
                    return GenerationCounters.Of(&counters);
                });
            }
        }

        /// <summary>The model's own settings of a generation, by what a caller may change.</summary>
        public GenerateOptions GenerationDefaults
        {
            get
            {
                return turn.Take(() =>
                {
                    var made = new vkf_generate_options { struct_size = (uint)sizeof(vkf_generate_options) };
                    Library.Check(Native.vkf_session_generation_defaults(Handle, &made, Library.Error));
                    return new GenerateOptions
                    {
                        Beams = made.beams, MaxNewTokens = made.max_new_tokens, MinNewTokens = made.min_new_tokens,
                        ReturnSequences = made.return_sequences, LengthPenalty = made.length_penalty, EarlyStopping = Utf8.Read(made.early_stopping),
                        Eos = Copy.Of(made.eos.ids, (int)made.eos.count), Pad = made.pad, DecoderStart = made.decoder_start,
                        DecoderPrompt = Copy.Of(made.decoder_prompt.ids, (int)made.decoder_prompt.count), ForcedBos = made.forced_bos,
                        ForcedEos = made.forced_eos, Suppress = Copy.Of(made.suppress.ids, (int)made.suppress.count),
                        BeginSuppress = Copy.Of(made.begin_suppress.ids, (int)made.begin_suppress.count)
                    };
                });
            }
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

        /// <summary>The same with some tensors in the application's own buffers.</summary>
        public void Start(Tensors inputs, IReadOnlyList<BufferRange> buffers, RunOptions options = null)
        {
            turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    Library.Check(Native.vkf_session_start_on_buffers(Handle, inputs.Handle, BufferRange.Put(arena, buffers), (UIntPtr)buffers.Count,
                        arena.Put((options ?? new RunOptions()).Fill(arena)), Library.Error));
                    return 0;
                }
            });
        }

        /// <summary>Begins a pass of a vision model on the application's own images; `inputs` may be null.</summary>
        public void Start(IReadOnlyList<vkf_image_input> images, ImageProcessor processor, Tensors inputs = null, RunOptions options = null)
        {
            turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    var rows = (vkf_image_input*)arena.Room(images.Count * sizeof(vkf_image_input));
                    for (int i = 0; i < images.Count; ++i) rows[i] = images[i];
                    var given = new vkf_image_inputs
                    {
                        struct_size = (uint)sizeof(vkf_image_inputs), images = rows, count = (UIntPtr)images.Count, processor = arena.Hold(processor.Handle)
                    };
                    Library.Check(Native.vkf_session_start_on_images(Handle, inputs == null ? VkfTensorsHandle.Null : inputs.Handle, &given,
                        arena.Put((options ?? new RunOptions()).Fill(arena)), Library.Error));
                    return 0;
                }
            });
        }

        /// <summary>Where inputs and outputs of what was started lie.</summary>
        public IReadOnlyList<BufferRange> PassBuffers()
        {
            return turn.Take(() =>
            {
                VkfPassBuffersHandle buffers;
                Library.Check(Native.vkf_session_pass_buffers(Handle, out buffers, Library.Error));
                using (buffers)
                {
                    var all = new List<BufferRange>();
                    for (ulong i = 0; i < (ulong)Native.vkf_pass_buffers_count(buffers); ++i)
                    {
                        var one = new vkf_pass_buffer { struct_size = (uint)sizeof(vkf_pass_buffer) };
                        Library.Check(Native.vkf_pass_buffers_get(buffers, (UIntPtr)i, &one, Library.Error));
                        all.Add(new BufferRange { Name = Utf8.Read(one.range.name), Buffer = one.range.buffer, Offset = one.range.offset, Bytes = one.range.bytes });
                    }
                    return (IReadOnlyList<BufferRange>)all;
                }
            });
        }

        /// <summary>Appends the next slice to a VkCommandBuffer of the application's.</summary>
        public Advance Record(IntPtr commandBuffer, double microseconds)
        {
            return turn.Take(() =>
            {
                var advance = new vkf_advance { struct_size = (uint)sizeof(vkf_advance) };
                Library.Check(Native.vkf_session_record(Handle, (void*)commandBuffer, microseconds, &advance, Library.Error));
                return Vkformer.Advance.Of(&advance);
            });
        }

        /// <summary>Drops recordings on buffers of the application, before it destroys such a buffer.</summary>
        public void ForgetBuffers()
        {
            turn.Take(() => { Library.Check(Native.vkf_session_forget_buffers(Handle, Library.Error)); return 0; });
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

        /// <summary>Prepares runs of these sizes while frames go on, and returns at once.</summary>
        public void WarmUp(SessionSizes sizes)
        {
            if (sizes == null) throw new ArgumentNullException("sizes");
            turn.Take(() =>
            {
                using (var arena = new Arena()) Library.Check(Native.vkf_session_warm_up(Handle, arena.Put(sizes.Fill(arena)), Library.Error));
                return 0;
            });
        }

        /// <summary>How much of all that WarmUp was asked for is there, 0 to 1.</summary>
        public double WarmedUp()
        {
            return turn.Take(() =>
            {
                double fraction;
                Library.Check(Native.vkf_session_warmed_up(Handle, &fraction, Library.Error));
                return fraction;
            });
        }

        /// <summary>Waits until all of it is there.</summary>
        public void FinishWarmUp()
        {
            turn.Take(() => { Library.Check(Native.vkf_session_finish_warm_up(Handle, Library.Error)); return 0; });
        }

        /// <summary>What slices of that budget a run of these sizes comes to.</summary>
        public FrameEstimate Estimate(SessionSizes sizes, double microseconds)
        {
            if (sizes == null) throw new ArgumentNullException("sizes");
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    var estimate = new vkf_frame_estimate { struct_size = (uint)sizeof(vkf_frame_estimate) };
                    Library.Check(Native.vkf_session_estimate(Handle, arena.Put(sizes.Fill(arena)), microseconds, &estimate, Library.Error));
                    return FrameEstimate.Of(&estimate);
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

        /// <summary>The command buffer that Record appended to last was never submitted: its slice comes again.</summary>
        public void DropRecorded()
        {
            turn.Take(() => { Library.Check(Native.vkf_session_drop_recorded(Handle, Library.Error)); return 0; });
        }

        /// <summary>Gives up what was started.</summary>
        public void Cancel()
        {
            turn.Take(() => { Library.Check(Native.vkf_session_cancel(Handle, Library.Error)); return 0; });
        }
    }
}
