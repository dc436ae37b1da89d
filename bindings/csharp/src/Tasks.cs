// What one does with a model: a class for each task.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Gets pieces of texts while they are written; false ends the text, an exception ends the call.</summary>
    public delegate bool OnText(int input, int sequence, string piece);

    /// <summary>A model that is loaded for one task. Several threads may call it; one runs at a time.</summary>
    public abstract unsafe class ModelTask : NativeObject<VkfTaskHandle>
    {
        private readonly Turn turn = new Turn();

        internal ModelTask(Device device, string directory, string name, TaskOptions options)
        {
            if (device == null) throw new ArgumentNullException("device");
            using (var arena = new Arena())
            {
                VkfTaskHandle made;
                Library.Check(Native.vkf_task_load(device.Handle, Utf8.Needed(directory, "directory"), Utf8.Bytes(name),
                    arena.Put((options ?? new TaskOptions()).Fill(arena)), out made, Library.Error));
                Handle = made;
            }
        }

        internal ModelTask(Device device, Source source, string name, TaskOptions options)
        {
            if (device == null) throw new ArgumentNullException("device");
            if (source == null) throw new ArgumentNullException("source");
            using (var arena = new Arena())
            {
                VkfTaskHandle made;
                Library.Check(Native.vkf_task_load_from(device.Handle, source.Handle, Utf8.Bytes(name),
                    arena.Put((options ?? new TaskOptions()).Fill(arena)), out made, Library.Error));
                Handle = made;
            }
            GC.KeepAlive(source);
        }

        /// <summary>What the model's directory holds.</summary>
        public ModelInfo Info
        {
            get
            {
                VkfDescriptionHandle description;
                Library.Check(Native.vkf_task_describe(Handle, out description, Library.Error));
                return Directories.Read(description);
            }
        }

        internal delegate int Call(Arena arena, out VkfFindingsHandle findings);

        internal T Take<T>(Func<T> work) { return turn.Take(work); }

        internal Finding[][] Find(Call call, Caught caught = null)
        {
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    VkfFindingsHandle findings;
                    int status = call(arena, out findings);
                    if (caught != null) caught.Rethrow();
                    Library.Check(status);
                    using (findings)
                    {
                        var all = new Finding[(int)Native.vkf_findings_inputs(findings)][];
                        for (int i = 0; i < all.Length; ++i)
                        {
                            all[i] = new Finding[(int)Native.vkf_findings_count(findings, (UIntPtr)i)];
                            for (int k = 0; k < all[i].Length; ++k)
                            {
                                var one = new vkf_finding { struct_size = (uint)sizeof(vkf_finding) };
                                Library.Check(Native.vkf_findings_get(findings, (UIntPtr)i, (UIntPtr)k, &one, Library.Error));
                                all[i][k] = Finding.Of(&one);
                            }
                        }
                        return all;
                    }
                }
            });
        }

        internal T Alone<T>(Func<T> call) { return turn.Take(call); }

        internal static VkfPictureHandle[] Handles(IReadOnlyList<Image> images)
        {
            if (images == null) throw new ArgumentNullException("images");
            return images.Select(image => image == null ? null : image.Handle).ToArray();
        }
    }

    /// <summary>Vectors of texts.</summary>
    public sealed unsafe class Embedder : ModelTask
    {
        public Embedder(Device device, string directory, TaskOptions options = null) : base(device, directory, "embed", options) { }
        public Embedder(Device device, Source source, TaskOptions options = null) : base(device, source, "embed", options) { }

        /// <summary>A vector for each text.</summary>
        public float[][] Embed(IReadOnlyList<string> texts, EmbedOptions options = null)
        {
            return Vectors(texts, options, tensors => tensors.Floats("embeddings"));
        }

        /// <summary>A vector for each text, of Values VKF_VECTOR_INT8 (-127 to 127) or VKF_VECTOR_BINARY (0 to 255, eight signs each).</summary>
        public long[][] EmbedInts(IReadOnlyList<string> texts, EmbedOptions options)
        {
            return Vectors(texts, options, tensors => tensors.Ints("embeddings"));
        }

        private T[][] Vectors<T>(IReadOnlyList<string> texts, EmbedOptions options, Func<Tensors, T[]> read)
        {
            if (texts == null) throw new ArgumentNullException("texts");
            return Alone(() =>
            {
                using (var arena = new Arena())
                {
                    VkfTensorsHandle made;
                    Library.Check(Native.vkf_task_embed(Handle, arena.Texts(texts), (UIntPtr)texts.Count,
                        arena.Put((options ?? new EmbedOptions()).Fill(arena)), out made, Library.Error));
                    using (var tensors = new Tensors(made))
                    {
                        long width = tensors.Shape("embeddings")[1];
                        T[] all = read(tensors);
                        return Enumerable.Range(0, texts.Count).Select(i => all.Skip((int)(i * width)).Take((int)width).ToArray()).ToArray();
                    }
                }
            });
        }
    }

    /// <summary>Labels of texts, of images, and entities in texts.</summary>
    public sealed unsafe class Classifier : ModelTask
    {
        public Classifier(Device device, string directory, TaskOptions options = null) : base(device, directory, "classify", options) { }
        public Classifier(Device device, Source source, TaskOptions options = null) : base(device, source, "classify", options) { }

        public bool FindsEntities { get { return Native.vkf_task_finds_entities(Handle) != 0; } }

        /// <summary>The likeliest labels (0: all) of each text, with second texts that belong to them or null.</summary>
        public Finding[][] Classify(IReadOnlyList<string> texts, int top = 0, IReadOnlyList<string> pairs = null)
        {
            if (texts == null) throw new ArgumentNullException("texts");
            if (pairs != null && pairs.Count != texts.Count) throw new ArgumentException("There are " + pairs.Count + " pairs for " + texts.Count + " texts.");
            return Find((Arena arena, out VkfFindingsHandle found) =>
            {
                var rows = (vkf_text_pair*)arena.Room(texts.Count * sizeof(vkf_text_pair));
                for (int i = 0; i < texts.Count; ++i)
                {
                    rows[i] = new vkf_text_pair { text = arena.Text(texts[i]), pair = pairs == null ? null : arena.Text(pairs[i]) };
                }
                return Native.vkf_task_classify(Handle, rows, (UIntPtr)texts.Count, top, out found, Library.Error);
            });
        }

        /// <summary>The likeliest labels (0: all) of each image.</summary>
        public Finding[][] Classify(IReadOnlyList<Image> images, int top = 0)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_classify_pictures(
                Handle, arena.Handles(Handles(images)), (UIntPtr)images.Count, top, out found, Library.Error));
        }

        /// <summary>Labels of one's own, for texts.</summary>
        public Finding[][] ZeroShot(IReadOnlyList<string> texts, ZeroShotOptions options)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_zero_shot(
                Handle, arena.Texts(texts), (UIntPtr)texts.Count, arena.Put(options.Fill(arena)), out found, Library.Error));
        }

        /// <summary>Labels of one's own, for images.</summary>
        public Finding[][] ZeroShot(IReadOnlyList<Image> images, ZeroShotOptions options)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_zero_shot_pictures(
                Handle, arena.Handles(Handles(images)), (UIntPtr)images.Count, arena.Put(options.Fill(arena)), out found, Library.Error));
        }

        /// <summary>The entities of each text with one of the options' labels, by a GLiNER.</summary>
        public Finding[][] ZeroShotEntities(IReadOnlyList<string> texts, EntityOptions options)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_zero_shot_entities(
                Handle, arena.Texts(texts), (UIntPtr)texts.Count, arena.Put(options.Fill(arena)), out found, Library.Error));
        }

        /// <summary>The entities of each text.</summary>
        public Finding[][] Entities(IReadOnlyList<string> texts)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_find_entities(
                Handle, arena.Texts(texts), (UIntPtr)texts.Count, out found, Library.Error));
        }
    }

    /// <summary>Documents by their score for a query.</summary>
    public sealed unsafe class Reranker : ModelTask
    {
        public Reranker(Device device, string directory, TaskOptions options = null) : base(device, directory, "rerank", options) { }

        /// <summary>Best first, each with its Index and Score.</summary>
        public Finding[] Rerank(string query, IReadOnlyList<string> documents, RerankOptions options = null)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_rerank(
                Handle, Utf8.Needed(query, "query"), arena.Texts(documents), (UIntPtr)documents.Count,
                arena.Put((options ?? new RerankOptions()).Fill(arena)), out found, Library.Error))[0];
        }
    }

    /// <summary>Answers to questions, found in texts.</summary>
    public sealed unsafe class Answerer : ModelTask
    {
        public Answerer(Device device, string directory, TaskOptions options = null) : base(device, directory, "answer", options) { }

        /// <summary>The best answers, best first.</summary>
        public Finding[] Answer(string question, string context, AnswerOptions options = null)
        {
            if (question == null) throw new ArgumentNullException("question");
            if (context == null) throw new ArgumentNullException("context");
            return Find((Arena arena, out VkfFindingsHandle found) =>
            {
                vkf_question* row = arena.Put(new vkf_question { question = arena.Text(question), context = arena.Text(context) });
                return Native.vkf_task_answer(Handle, row, (UIntPtr)1, arena.Put((options ?? new AnswerOptions()).Fill(arena)), out found, Library.Error);
            })[0];
        }
    }

    /// <summary>Tokens for the gaps of texts.</summary>
    public sealed unsafe class MaskFiller : ModelTask
    {
        public MaskFiller(Device device, string directory, TaskOptions options = null) : base(device, directory, "fill-mask", options) { }

        /// <summary>What a gap is written as.</summary>
        public string MaskToken { get { return Utf8.Read(Native.vkf_task_mask_token(Handle)); } }

        public Finding[][] Fill(IReadOnlyList<string> texts, int top = 0)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_fill(
                Handle, arena.Texts(texts), (UIntPtr)texts.Count, top, out found, Library.Error));
        }
    }

    /// <summary>What was said.</summary>
    public sealed unsafe class Transcriber : ModelTask
    {
        public Transcriber(Device device, string directory, TaskOptions options = null) : base(device, directory, "transcribe", options) { }

        /// <summary>For each the text and, with options' Words, its words after it.</summary>
        public Finding[][] Transcribe(IReadOnlyList<Audio> audio, TranscribeOptions options = null)
        {
            if (audio == null) throw new ArgumentNullException("audio");
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_transcribe(
                Handle, arena.Handles(audio.Select(one => one.Handle).ToArray()), (UIntPtr)audio.Count,
                arena.Put((options ?? new TranscribeOptions()).Fill(arena)), out found, Library.Error));
        }
    }

    /// <summary>Texts for images.</summary>
    public sealed unsafe class Captioner : ModelTask
    {
        public Captioner(Device device, string directory, TaskOptions options = null) : base(device, directory, "caption", options) { }

        public string[] Caption(IReadOnlyList<Image> images, TextOptions options = null)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_caption(
                Handle, arena.Handles(Handles(images)), (UIntPtr)images.Count, arena.Put((options ?? new TextOptions()).Fill(arena)),
                out found, Library.Error)).Select(rows => rows[0].Text).ToArray();
        }
    }

    /// <summary>Objects in images.</summary>
    public sealed unsafe class Detector : ModelTask
    {
        public Detector(Device device, string directory, TaskOptions options = null) : base(device, directory, "detect", options) { }

        public Finding[][] Detect(IReadOnlyList<Image> images, double threshold = 0.5, int top = 0)
        {
            return Find((Arena arena, out VkfFindingsHandle found) => Native.vkf_task_detect(
                Handle, arena.Handles(Handles(images)), (UIntPtr)images.Count, threshold, top, out found, Library.Error));
        }
    }

    /// <summary>How far or near each pixel of an image is.</summary>
    public sealed unsafe class DepthEstimator : ModelTask
    {
        public DepthEstimator(Device device, string directory, TaskOptions options = null) : base(device, directory, "depth", options) { }

        /// <summary>"depth" (height, width): of a relative model the larger, the nearer.</summary>
        public Tensors Estimate(Image image)
        {
            if (image == null) throw new ArgumentNullException("image");
            return Take(() =>
            {
                VkfTensorsHandle made;
                Library.Check(Native.vkf_task_depth(Handle, image.Handle, out made, Library.Error));
                GC.KeepAlive(image);
                return new Tensors(made);
            });
        }
    }

    /// <summary>What one mask is wanted of: points, a box, or both, in pixels.</summary>
    public sealed class MaskPrompt
    {
        /// <summary>(x, y) of what is wanted.</summary>
        public IReadOnlyList<double[]> Points { get; set; }
        /// <summary>(x, y) of what is not wanted.</summary>
        public IReadOnlyList<double[]> Outside { get; set; }
        /// <summary>Left, top, right and bottom; null: none.</summary>
        public double[] Box { get; set; }
    }

    /// <summary>Masks of things in images.</summary>
    public sealed unsafe class Segmenter : ModelTask
    {
        public Segmenter(Device device, string directory, TaskOptions options = null) : base(device, directory, "segment", options) { }

        /// <summary>"masks" (prompts, masks, height, width), bytes of which 1 is inside, and "scores" (prompts, masks). Of each
        /// prompt the `top` best (0: all), best first.</summary>
        public Tensors Segment(Image image, IReadOnlyList<MaskPrompt> prompts, int top = 0)
        {
            if (image == null) throw new ArgumentNullException("image");
            if (prompts == null) throw new ArgumentNullException("prompts");
            return Take(() =>
            {
                using (var arena = new Arena())
                {
                    var rows = new vkf_mask_prompt[Math.Max(prompts.Count, 1)];
                    for (int i = 0; i < prompts.Count; ++i)
                    {
                        vkf_prompt_point[] points = Places(prompts[i].Points, 0).Concat(Places(prompts[i].Outside, 1)).ToArray();
                        double[] box = prompts[i].Box;
                        if (box != null && box.Length != 4) throw new ArgumentException("The box has " + box.Length + " numbers; give left, top, right and bottom.");
                        rows[i].points = (vkf_prompt_point*)arena.Pin(points);
                        rows[i].point_count = (UIntPtr)points.Length;
                        if (box != null) rows[i].box = (double*)arena.Pin(box);
                    }
                    fixed (vkf_mask_prompt* first = rows)
                    {
                        VkfTensorsHandle made;
                        Library.Check(Native.vkf_task_segment(Handle, image.Handle, first, (UIntPtr)prompts.Count, top, out made, Library.Error));
                        GC.KeepAlive(image);
                        return new Tensors(made);
                    }
                }
            });
        }

        private static IEnumerable<vkf_prompt_point> Places(IReadOnlyList<double[]> points, int outside)
        {
            foreach (double[] point in points ?? new double[0][])
            {
                if (point == null || point.Length != 2) throw new ArgumentException("A point is not (x, y).");
                yield return new vkf_prompt_point { x = point[0], y = point[1], outside = outside };
            }
        }
    }

    /// <summary>Texts spoken.</summary>
    public sealed unsafe class Speaker : ModelTask
    {
        public Speaker(Device device, string directory, TaskOptions options = null) : base(device, directory, "speak", options) { }

        public Audio Speak(string text, SpeakOptions options = null)
        {
            return Take(() =>
            {
                using (var arena = new Arena())
                {
                    VkfSoundHandle made;
                    Library.Check(Native.vkf_task_speak(Handle, Utf8.Needed(text, "text"), arena.Put((options ?? new SpeakOptions()).Fill(arena)),
                        out made, Library.Error));
                    return new Audio(made);
                }
            });
        }
    }

    /// <summary>Texts that go on from texts.</summary>
    public sealed unsafe class Generator : ModelTask
    {
        public Generator(Device device, string directory, TaskOptions options = null) : base(device, directory, "generate", options) { }
        public Generator(Device device, Source source, TaskOptions options = null) : base(device, source, "generate", options) { }

        /// <summary>What stands for an image in a prompt; null where the model reads none.</summary>
        public string ImagePlaceholder { get { return Utf8.Read(Native.vkf_task_picture_placeholder(Handle)); } }

        /// <summary>The sequences of each text, best first.</summary>
        public Finding[][] Generate(IReadOnlyList<string> texts, TextOptions options = null, OnText onText = null,
                                    IReadOnlyList<IReadOnlyList<Image>> images = null)
        {
            if (texts == null) throw new ArgumentNullException("texts");
            if (images != null && images.Count != texts.Count) throw new ArgumentException("There are images of " + images.Count + " prompts for " + texts.Count + " texts.");
            using (var caught = new Caught(onText))
            {
                return Find((Arena arena, out VkfFindingsHandle found) =>
                {
                    vkf_text_options* given = arena.Put((options ?? new TextOptions()).Fill(arena));
                    if (onText != null)
                    {
                        given->on_text = Marshal.GetFunctionPointerForDelegate(forward);
                        given->on_text_user = (void*)caught.Pointer;
                    }
                    if (images == null) return Native.vkf_task_generate(Handle, arena.Texts(texts), (UIntPtr)texts.Count, given, out found, Library.Error);
                    var rows = (vkf_prompt*)arena.Room(texts.Count * sizeof(vkf_prompt));
                    for (int i = 0; i < texts.Count; ++i)
                    {
                        rows[i] = new vkf_prompt { text = arena.Text(texts[i]), pictures = arena.Handles(Handles(images[i])), picture_count = (UIntPtr)images[i].Count };
                    }
                    return Native.vkf_task_generate_with_pictures(Handle, rows, (UIntPtr)texts.Count, given, out found, Library.Error);
                }, caught);
            }
        }

        /// <summary>The best text for one prompt.</summary>
        public string Generate(string text, TextOptions options = null) { return Generate(new[] { text }, options)[0][0].Text; }

        /// <summary>The pieces of one text while it is written on another thread. What is left early, or
        /// cancelled, ends the generation.</summary>
        public TextStream Stream(string text, TextOptions options = null, CancellationToken cancellation = default(CancellationToken))
        {
            if (text == null) throw new ArgumentNullException("text");
            return new TextStream(onText => Generate(new[] { text }, options, onText)[0][0], cancellation);
        }

        private static readonly vkf_on_text forward = Forward;

        [MonoPInvokeCallback(typeof(vkf_on_text))]
        private static int Forward(void* user, UIntPtr input, UIntPtr sequence, byte* piece)
        {
            Caught caught = Caught.Of((IntPtr)user);
            try { return ((OnText)caught.Target)((int)input, (int)sequence, Utf8.Read(piece)) ? Vkf.VKF_GO_ON : Vkf.VKF_END_TEXT; }
            catch (Exception failure) { caught.Failure = failure; return Vkf.VKF_CANCEL_GENERATION; }
        }
    }

    /// <summary>A conversation with a model that has a chat template.</summary>
    public sealed class Chat
    {
        private readonly Generator generator;
        private readonly ChatTemplate template;
        private readonly List<Message> messages = new List<Message>();

        public Chat(Generator generator, ChatTemplate template, string system = null)
        {
            if (generator == null) throw new ArgumentNullException("generator");
            if (template == null) throw new ArgumentNullException("template");
            this.generator = generator;
            this.template = template;
            if (system != null) messages.Add(new Message("system", system));
        }

        /// <summary>What was said.</summary>
        public IReadOnlyList<Message> Messages { get { return messages; } }

        /// <summary>The model's answer. What could not be answered was not said.</summary>
        public string Say(string text, TextOptions options = null, OnText onText = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            var said = new List<Message>(messages) { new Message("user", text) };
            options = options ?? new TextOptions();
            options.HasSpecialTokens = 1;
            string answer = generator.Generate(new[] { template.Render(said) }, options, onText)[0][0].Text;
            messages.Add(said[said.Count - 1]);
            messages.Add(new Message("assistant", answer));
            return answer;
        }
    }
}
