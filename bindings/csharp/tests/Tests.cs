// The C# binding against right results, and with wrong types, disposed objects, threads, cancelled streams.
//
//     mono Tests.exe SOURCE_DIRECTORY c_api.tsv
//
// c_api.tsv has a line for each struct of the C interface: name, bytes; written by bindings/csharp/test.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Vkformer;
using Vkformer.Interop;

internal static class Reading
{
    public static async Task<string> ReadAsync(TextStream stream, int most, CancellationToken cancellation)
    {
        string text = "";
        IAsyncEnumerator<string> pieces = stream.GetAsyncEnumerator(cancellation);
        Exception failure = null;
        try
        {
            while (most-- > 0 && await pieces.MoveNextAsync()) text += pieces.Current;
        }
        catch (Exception caught) { failure = caught; }
        await pieces.DisposeAsync();
        if (failure != null) throw failure;
        return text;
    }
}

internal static unsafe class Tests
{
    private static string source, tasks;
    private static Device device;
    private static int failed, passed;

    private static void Check(bool right, string what)
    {
        if (!right) throw new Exception("not so: " + what);
    }

    private static void Same<T>(T found, T wanted, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(found, wanted)) throw new Exception(what + " is [" + found + "], not [" + wanted + "]");
    }

    /// <summary>The call must throw, and say something.</summary>
    private static T Throws<T>(Action call) where T : Exception
    {
        try { call(); }
        catch (T failure)
        {
            Check(failure.Message.Length > 10, failure.Message);
            return failure;
        }
        throw new Exception("nothing was thrown, but a " + typeof(T).Name + " should be");
    }

    private static Status Fails(Action call) { return Throws<VkformerException>(call).Status; }

    private static void Run(string name, Action test)
    {
        try
        {
            test();
            ++passed;
            Console.WriteLine("ok      " + name);
        }
        catch (Exception failure)
        {
            ++failed;
            Console.WriteLine("FAILED  " + name + ": " + failure);
        }
    }

    private static string G2p { get { return Path.Combine(source, "models/g2p-en"); } }
    private static string Plays { get { return Path.Combine(source, "models/shakespeare"); } }
    private static string Task(string name) { return Path.Combine(tasks, name); }

    private static DeviceOptions DeviceChoice()
    {
        return new DeviceOptions
        {
            Device = Environment.GetEnvironmentVariable("VKFORMER_TEST_DEVICE"),
            Tier = Environment.GetEnvironmentVariable("VKFORMER_TEST_TIER"),
            Limits = Environment.GetEnvironmentVariable("VKFORMER_TEST_LIMITS")
        };
    }

    private static int Main(string[] arguments)
    {
        source = arguments[0];
        tasks = Path.Combine(source, "tests/tasks/golden");
        device = new Device(DeviceChoice());
        Run("structs have the sizes of C", () => Sizes(arguments[1]));
        Run("every function can be called", EveryFunction);
        Run("devices and models", Models);
        Run("adapters belong to requests", RequestAdapters);
        Run("adapters come from memory", AdaptersFromMemory);
        Run("sessions", Sessions);
        Run("tasks", TaskResults);
        Run("images and audio", Media);
        Run("texts, grammars, chats", Texts);
        Run("streams", Streams);
        Run("wrong arguments", WrongArguments);
        Run("disposed objects", Disposed);
        Run("threads", Threads);
        Run("callbacks", Callbacks);
        Run("batches", Batches);
        Run("batches with images", BatchesWithImages);
        Run("attention maps", Maps);
        Run("operators and measuring", OperatorsAndMeasuring);
        Run("loading", Loading);
        Run("tokens one by one", Streaming);
        Run("parts of a pass", PartsOfAPass);
        Run("memory stays flat", Memory);
        device.Dispose();
        Console.WriteLine("csharp: " + passed + " passed, " + failed + " failed");
        return failed == 0 ? 0 : 1;
    }

    private static void Sizes(string file)
    {
        Same(Library.ApiVersion, Vkf.VKF_API_VERSION, "version");
        int count = 0;
        foreach (string line in File.ReadAllLines(file))
        {
            string[] parts = line.Split('\t');
            Type type = typeof(Native).Assembly.GetType("Vkformer.Interop." + parts[0]);
            Same(Marshal.SizeOf(type), int.Parse(parts[1]), parts[0]);
            ++count;
        }
        Check(count > 60, "there are structs");
    }

    /// <summary>Null for all pointers and objects and 0 for all numbers: a failure, or the result for nothing.</summary>
    private static void EveryFunction()
    {
        int count = 0;
        foreach (MethodInfo method in typeof(Native).GetMethods(BindingFlags.Public | BindingFlags.Static).Where(m => m.Name.StartsWith("vkf_")))
        {
            ParameterInfo[] parameters = method.GetParameters();
            var given = new object[parameters.Length];
            bool fails = parameters.Length > 0 && parameters.Last().ParameterType == typeof(VkfErrorHandle) && method.Name != "vkf_error_status"
                         && method.Name != "vkf_error_message";
            VkfErrorHandle error = Native.vkf_error_create();
            for (int i = 0; i < parameters.Length; ++i)
            {
                Type type = parameters[i].ParameterType;
                if (type.IsByRef) given[i] = null;
                else if (typeof(SafeHandle).IsAssignableFrom(type)) given[i] = fails && i == parameters.Length - 1 ? error : type.GetField("Null").GetValue(null);
                else if (type.IsPointer || type == typeof(byte[])) given[i] = null;
                else given[i] = Activator.CreateInstance(type);
            }
            object result = method.Invoke(null, given);
            bool made = given.Any(one => one is SafeHandle && one != (object)error && !((SafeHandle)one).IsInvalid);
            if (fails)
            {
                Check((int)result != 0 || made, method.Name + " fails or makes something of nothing");
                Check((int)result == 0 || Marshal.PtrToStringAnsi(Native.vkf_error_message(error)).Length > 10, method.Name + " says why");
            }
            foreach (object one in given) if (one is SafeHandle && !((SafeHandle)one).IsInvalid && one != (object)error) ((SafeHandle)one).Dispose();
            error.Dispose();
            ++count;
        }
        Console.WriteLine("        " + count + " functions");
        Check(count > 220, "all are there");
    }

    private static void Models()
    {
        Check(Device.All().Any(one => one.Name == device.Info.Name), "the device is listed");
        Check(device.Tier.Length > 0 && Library.Version.Contains("."), "texts");
        ModelInfo info = Directories.Describe(G2p);
        Same(info.Kind, "encoder-decoder", "kind");
        Check(Directories.Families().Any(family => family.FamilyValue == info.Family), "the family is listed");
        int told = 0;
        using (var model = new Model(device, G2p, null, (loaded, total) => { ++told; return loaded <= total; }))
        {
            Same(model.Info.Parameters, info.Parameters, "parameters");
            Check(model.WeightBytes > 0 && told > 0 && device.MemoryInUse > 0 && device.MemoryAllocated >= device.MemoryInUse, "memory");
        }
        Same(Fails(() => new Model(device, G2p, null, (loaded, total) => false)), Status.Cancelled, "status");
        Throws<FormatException>(() => new Model(device, G2p, null, (loaded, total) => { throw new FormatException("thrown by a callback"); }));
        using (var group = new DeviceGroup(new[] { device, device }, new[] { 2.0, 1.0 }))
        using (var alone = new Model(device, Plays))
        using (var together = new Model(device, Plays, new ModelOptions { Group = group }))
        using (var one = new Session(alone))
        using (var two = new Session(together))
        {
            long[] prompt = { 10, 11, 12 };
            var options = new GenerateOptions { MaxNewTokens = 8 };
            Check(two.Generate(new[] { prompt }, options)[0][0].Ids.SequenceEqual(one.Generate(new[] { prompt }, options)[0][0].Ids), "a model on a group");
            Same(together.GroupPlan.Trim().Split('\n').Length, 2, "lines of the plan");
            Same(alone.GroupPlan, "", "plan of one device");
        }
        Fails(() => new Model(device, Source.Pack("/nowhere.vkfpack")));
        Throws<ArgumentException>(() => new DeviceGroup(new[] { device, device }, new[] { 2.0 }));
        Fails(() => new DeviceGroup(new[] { device }));
        using (var group = DeviceGroup.Divided(new[] { device, device }))
        using (var together = new Model(device, Plays, new ModelOptions { Group = group }))
            Check(together.GroupPlan.Contains("part 2 of 2 of every layer"), "plan of divided layers");
        using (var group = DeviceGroup.Fastest(new[] { device, device }))
        using (var together = new Model(device, Plays, new ModelOptions { Group = group }))
            Check(together.GroupPlan.Contains("estimated for a split by"), "plan of the faster split");
        Dictionary<string, byte[]> files = Directory.GetFiles(G2p).ToDictionary(Path.GetFileName, File.ReadAllBytes);
        using (var memory = new Source(files))
        using (var folder = new Source(G2p))
        using (var generator = new Generator(device, memory))
        using (var model = new Model(device, folder))
        {
            Same(generator.Generate("all"), "AO1 L", "text");
            Same(generator.Info.Family, model.Info.Family, "family");
        }
    }

    private static void RequestAdapters()
    {
        string two = Path.Combine(source, "tests/golden/adapter-two");
        string[] folders = { Path.Combine(two, "first"), Path.Combine(two, "second") }, names = { "one", "two" };
        var apart = new ModelOptions { RequestAdapters = folders, RequestAdapterNames = names };
        var merged = new ModelOptions { Adapters = folders, AdapterScales = new[] { 0.5f, -1.25f } };
        using (var model = new Model(device, Path.Combine(two, "base"), apart))
        using (var other = new Model(device, Path.Combine(two, "base"), merged))
        using (var session = new Session(model))
        using (var expected = new Session(other))
        {
            long[] prompt = { 3, 9, 4 };
            var chosen = new GenerateOptions { MaxNewTokens = 8, Adapters = names, AdapterScales = new[] { 0.5f, -1.25f } };
            Sequence[][] wanted = expected.Generate(new[] { prompt }, new GenerateOptions { MaxNewTokens = 8 });
            Check(session.Generate(new[] { prompt }, chosen)[0][0].Ids.SequenceEqual(wanted[0][0].Ids), "adapters of a request");
            Fails(() => session.Generate(new[] { prompt }, new GenerateOptions { Adapters = new[] { "three" } }));
            Throws<ArgumentException>(() => session.Generate(new[] { prompt }, new GenerateOptions { Adapters = names, AdapterScales = new[] { 1f } }));
        }
    }

    // Scales are set again from bytes that nothing but the model refers to.
    private static void AdaptersFromMemory()
    {
        string folder = Path.Combine(source, "tests/golden/adapter-two");
        var prompts = new[] { new long[] { 3, 9, 4 } };
        Func<Model, Sequence> first = model => { using (var session = new Session(model)) return session.Generate(prompts, new GenerateOptions { MaxNewTokens = 6 })[0][0]; };
        Func<Model> fromMemory = () =>
        {
            var files = Directory.GetFiles(Path.Combine(folder, "base")).ToDictionary(Path.GetFileName, File.ReadAllBytes);
            foreach (string file in Directory.GetFiles(Path.Combine(folder, "first"))) files["style/" + Path.GetFileName(file)] = File.ReadAllBytes(file);
            using (var memory = new Source(files)) return new Model(device, memory, new ModelOptions { Adapters = new[] { "style" }, AdapterScales = new[] { 0f } });
        };
        using (var expected = new Model(device, Path.Combine(folder, "base"), new ModelOptions { Adapters = new[] { Path.Combine(folder, "first") } }))
        using (Model model = fromMemory())
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Sequence wanted = first(expected);
            Check(first(model).Score != wanted.Score, "an adapter of scale 0");
            model.SetAdapterScales(new[] { 1f });
            Check(first(model).Score == wanted.Score, "an adapter from memory");
        }
    }

    private static void Sessions()
    {
        using (var model = new Model(device, G2p))
        using (var session = new Session(model))
        using (var tokenizer = new Tokenizer(G2p))
        {
            long[] ids = tokenizer.Encode("attention").Ids;
            var tokens = new List<long>();
            Sequence[][] found = session.Generate(new[] { ids }, null, (input, sequence, id, p) => { tokens.Add(id); return true; });
            Same(tokenizer.Decode(found[0][0].Ids), "AH0 T EH1 N SH AH0 N", "text");
            Check(found[0][0].Ids.Skip(found[0][0].Ids.Length - tokens.Count).SequenceEqual(tokens), "tokens");
            Sequence[][] beams = session.Generate(new[] { ids, ids }, new GenerateOptions { Beams = 4, ReturnSequences = 2 });
            Check(beams.Length == 2 && beams[0].Length == 2, "beams");
            long banned = found[0][0].Ids[1];
            var without = new GenerateOptions { Biases = new[] { new TokenBias { Tokens = new[] { banned }, Bias = double.NegativeInfinity } } };
            Check(!session.Generate(new[] { ids }, without)[0][0].Ids.Contains(banned), "biases");
            Check(!session.Generate(new[] { ids }, new GenerateOptions { BadWords = new[] { new[] { banned } } })[0][0].Ids.Contains(banned), "bad words");

            using (var inputs = new Tensors())
            {
                inputs.Set("input_ids", ids, 1, ids.Length);
                inputs.Set("decoder_input_ids", new long[] { 1 }, 1, 1);
                Check(inputs.Names.SequenceEqual(new[] { "decoder_input_ids", "input_ids" }), "names");
                using (Tensors outputs = session.Run(inputs, new RunOptions { Flags = Vkf.VKF_RUN_ATTENTIONS }))
                {
                    long[] shape = outputs.Shape("cross_attentions.0");
                    float[] values = outputs.Floats("cross_attentions.0");
                    int keys = (int)shape[3];
                    for (int row = 0; row < values.Length / keys; ++row)
                    {
                        Check(Math.Abs(values.Skip(row * keys).Take(keys).Sum() - 1) < 1e-4, "a row's sum is 1");
                    }
                    float first = outputs.View<float, float>("cross_attentions.0", elements => elements[0]);
                    Same(first, values[0], "view");
                    Same(outputs.ElementType("cross_attentions.0"), DType.F32, "type");
                    Throws<ArgumentException>(() => outputs.View<long, long>("cross_attentions.0", elements => elements[0]));
                    string name = outputs.Names[0];
                    session.Start(inputs);
                    Advance step;
                    do { step = session.Advance(500); } while (step.Progress == Vkf.VKF_RUNNING || step.Progress == Vkf.VKF_PREPARING);
                    using (Tensors sliced = session.Finish())
                    using (Tensors whole = session.Run(inputs))
                    {
                        Check(sliced.Floats(whole.Names[0]).SequenceEqual(whole.Floats(whole.Names[0])), "slices give the same bits");
                    }
                    var sizes = new SessionSizes { Inputs = inputs };
                    session.WarmUp(sizes);
                    session.FinishWarmUp();
                    Same(session.WarmedUp(), 1.0, "warm");
                    FrameEstimate estimate = session.Estimate(sizes, 1000);
                    Check(estimate.Frames >= estimate.FirstFrames && estimate.Frames > 0, "an estimate");
                    session.Start(inputs);
                    using (var frames = new FrameScheduler())
                    {
                        ulong job = frames.Add(session, new FrameJob { Priority = Vkf.VKF_JOB_HIGH });
                        Throws<VkformerException>(() => frames.Add(session));
                        Throws<VkformerException>(() => frames.Record(IntPtr.Zero, 1000));
                        while (frames.Count > 0) foreach (FrameProgress progress in frames.Advance(1000)) Same(progress.Job, job, "job");
                        frames.Remove(job);
                    }
                    using (Tensors shared = session.Finish())
                    using (Tensors whole = session.Run(inputs))
                    {
                        Check(shared.Floats(whole.Names[0]).SequenceEqual(whole.Floats(whole.Names[0])), "shared frames give the same bits");
                    }
                    session.Start(inputs);
                    session.Cancel();
                    string file = Path.GetTempFileName();
                    outputs.Write(file);
                    using (Tensors read = Tensors.Read(file)) Same(read.Count, outputs.Count, "count");
                    File.Delete(file);
                }
            }
            using (var prompt = new Tensors())
            {
                prompt.Set("input_ids", ids, 1, ids.Length);
                session.StartGeneration(prompt);
                while (session.Advance(1e6).Progress != Vkf.VKF_DONE) { }
                Check(session.FinishGeneration()[0][0].Ids.SequenceEqual(found[0][0].Ids), "the same ids in slices");
            }
        }
    }

    /// <summary>Right answers of the golden cases, copied by bindings/csharp/test from their JSON.</summary>
    private static string[] Right(string name)
    {
        return File.ReadAllLines(Path.Combine(Environment.GetEnvironmentVariable("VKFORMER_TEST_RIGHT"), name + ".txt"));
    }

    private static void TaskResults()
    {
        using (var embedder = new Embedder(device, Task("embed")))
        {
            string[] texts = Right("embed-texts");
            float[][] found = embedder.Embed(texts);
            double[] wanted = Right("embed").Select(line => double.Parse(line, System.Globalization.CultureInfo.InvariantCulture)).ToArray();
            for (int i = 0; i < wanted.Length; ++i) Check(Math.Abs(found[i / 32][i % 32] - wanted[i]) < 2e-5, "vector " + i);
            float[] unit = embedder.Embed(texts, new EmbedOptions { UnitLength = 1, Pooling = Vkf.VKF_POOL_MEAN })[0];
            Check(Math.Abs(unit.Sum(x => (double)x * x) - 1) < 1e-4, "unit length");
            long[] signs = embedder.EmbedInts(texts, new EmbedOptions { Dimensions = 8, Values = Vkf.VKF_VECTOR_BINARY })[0];
            Same(signs[0] >> 7, found[0][0] > 0 ? 1L : 0L, "the first sign");
        }
        using (var classifier = new Classifier(device, Task("labels")))
        {
            string[] labels = classifier.Classify(Right("embed-texts")).Select(rows => rows[0].Label).ToArray();
            Check(labels.SequenceEqual(Right("labels")), "labels: " + string.Join(", ", labels));
            Check(!classifier.FindsEntities && classifier.Classify(new[] { "a" }, 1, new[] { "b" })[0].Length == 1, "pairs");
        }
        using (var entities = new Classifier(device, Task("entities"))) Check(entities.FindsEntities && entities.Entities(Right("embed-texts")).Length == 6, "entities");
        using (var entities = new Classifier(device, Task("named-entities")))
        {
            var options = new EntityOptions { Labels = new[] { "person", "city" }, Flags = Vkf.VKF_ENTITY_NESTED, Threshold = 0.25 };
            Finding[] found = entities.ZeroShotEntities(new[] { "Barack went to the U.S." }, options)[0];
            Check(found.Length > 0 && found.All(one => one.Score > 0.25), "named entities");
        }
        using (var classifier = new Classifier(device, Task("zero-shot")))
        {
            Finding[][] found = classifier.ZeroShot(Right("embed-texts"), new ZeroShotOptions { Labels = new[] { "animals", "a city", "politics", "music" } });
            Same(found[0][0].Label, "a city", "zero-shot");
        }
        using (var reranker = new Reranker(device, Task("rerank")))
        {
            long[] order = reranker.Rerank("Who met Müller?", Right("embed-texts")).Select(one => one.Index).ToArray();
            Check(order.SequenceEqual(Right("rerank").Select(long.Parse)), "order: " + string.Join(", ", order));
        }
        using (var answerer = new Answerer(device, Task("answers")))
        {
            string[] right = Right("answers");
            Finding found = answerer.Answer(right[0], right[1], new AnswerOptions { Window = 96, Overlap = 48, Flags = Vkf.VKF_ANSWER_OVERLAP, MaxAnswerTokens = 15 })[0];
            Same(found.Text, right[2], "answer");
        }
        using (var filler = new MaskFiller(device, Task("masks"))) Same(filler.Fill(new[] { "The quick " + filler.MaskToken + " fox." }, 4)[0][0].Text, "the quickt fox.", "filled");
        using (var generator = new Generator(device, Task("translations")))
        {
            string[] found = generator.Generate(Right("embed-texts"), new TextOptions { Task = "go" }).Select(rows => rows[0].Text).ToArray();
            Check(found.SequenceEqual(Right("translations")), "translations: " + string.Join(" | ", found));
        }
        using (var generator = new Generator(device, Plays))
        {
            Func<ulong, TextOptions> sampled = seed => new TextOptions { MaxNewTokens = 20, Choice = new ChoiceOptions { Sample = 1, Temperature = 0.8, TopP = 0.95, Seed = seed } };
            Same(generator.Generate("ROMEO:", sampled(7)), generator.Generate("ROMEO:", sampled(7)), "same seed");
            Check(generator.Generate("ROMEO:", sampled(7)) != generator.Generate("ROMEO:", sampled(8)), "other seed");
            using (var grammar = new Grammar("root ::= \"yes\" | \"no\""))
            {
                string text = generator.Generate("ROMEO:", new TextOptions { Grammar = grammar });
                Check(text == "yes" || text == "no", text);
            }
        }
    }

    private static void Media()
    {
        string[] files = Enumerable.Range(0, 3).Select(i => Task("picture-" + i + ".png")).ToArray();
        Image[] images = files.Select(file => new Image(file)).ToArray();
        using (var again = new Image(images[0].ToRgb(), images[0].Width, images[0].Height, Vkf.VKF_RGB8))
        using (var decoded = new Image(File.ReadAllBytes(files[0])))
        {
            Check(again.ToRgb().SequenceEqual(images[0].ToRgb()) && decoded.ToRgb().SequenceEqual(images[0].ToRgb()), "pixels");
        }
        using (var classifier = new Classifier(device, Task("picture-labels"))) Same(classifier.Classify(images, 2)[0][0].Label, "thing 0", "label");
        using (var classifier = new Classifier(device, Task("picture-texts")))
        {
            Same(classifier.ZeroShot(images, new ZeroShotOptions { Labels = new[] { "animals", "a city", "politics", "music" } })[0][0].Label, "music", "label");
        }
        using (var captioner = new Captioner(device, Task("captions"))) Check(captioner.Caption(images, new TextOptions { MaxNewTokens = 8 }).SequenceEqual(Right("captions")), "captions");
        using (var detector = new Detector(device, Task("objects")))
        {
            Finding best = detector.Detect(images, 0)[0][0];
            Check(best.Label == "dog" && Math.Abs(best.Box[0] - 9.509) < 0.01, best.Label + " at " + best.Box[0]);
        }
        using (var estimator = new DepthEstimator(device, Task("depth")))
        using (Tensors depth = estimator.Estimate(images[0]))
            Check(depth.Floats("depth").Length == 500 && depth.Floats("depth").Any(one => one != 0), "depth");
        using (var segmenter = new Segmenter(device, Task("segments")))
        {
            var prompt = new MaskPrompt { Points = new[] { new[] { 4.0, 5.5 } }, Outside = new[] { new[] { 1.0, 14.0 } } };
            using (Tensors masks = segmenter.Segment(images[0], new[] { prompt }))
            {
                float[] scores = masks.Floats("scores");
                Check(scores.Length > 1 && scores.SequenceEqual(scores.OrderByDescending(one => one)), "scores of masks");
            }
            Throws<ArgumentException>(() => segmenter.Segment(images[0], new[] { new MaskPrompt { Box = new[] { 1.0 } } }));
            Fails(() => segmenter.Segment(images[0], new[] { new MaskPrompt() }));
        }
        using (var speaker = new Speaker(device, Task("speak")))
        using (Audio slow = speaker.Speak("Hello, kind world!", new SpeakOptions { Seed = 7, SpeakingRate = 0.5, Noise = 0, DurationNoise = 0 }))
        using (Audio fast = speaker.Speak("Hello, kind world!", new SpeakOptions { Seed = 7, SpeakingRate = 2, Noise = 0, DurationNoise = 0 }))
        {
            Check(fast.Count > 0 && fast.Count < slow.Count, "the rate of speech");
            string path = Path.Combine(Path.GetTempPath(), "vkformer-said-" + Guid.NewGuid() + ".wav");
            try
            {
                slow.Save(path);
                using (var again = new Audio(path)) Same(again.Count, slow.Count, "samples of a saved file");
            }
            finally { File.Delete(path); }
        }
        using (var generator = new Generator(device, Task("prompts-llava")))
        {
            Check(generator.ImagePlaceholder != null, "placeholder");
            Finding found = generator.Generate(new[] { "What is this?" }, new TextOptions { MaxNewTokens = 8 }, null, new[] { new[] { images[0] } })[0][0];
            Check(found.Ids.SequenceEqual(new long[] { 104, 104, 104, 104, 104, 104, 72, 72 }), "ids of a prompt with an image");
        }
        using (var transcriber = new Transcriber(device, Task("ctc")))
        using (var audio = new Audio(Task("sound-0.wav")))
        {
            Finding[] found = transcriber.Transcribe(new[] { audio }, new TranscribeOptions { Words = 1 })[0];
            Same(found[0].Text, Right("ctc")[0], "text");
            Check(found.Length > 5 && found[1].BeginSeconds < found[2].BeginSeconds, "words");
            Check(audio.Count > 0 && audio.SamplingRate > 0, "samples");
            using (var tone = new Audio(new float[1600], 16000)) Same(tone.Count, 1600L, "count");
        }
    }

    private static void Texts()
    {
        using (var tokenizer = new Tokenizer(Plays))
        {
            Encoding encoding = tokenizer.Encode("To be, or not — Ä");
            Same(tokenizer.Decode(encoding.Ids).Trim(), "To be, or not — Ä", "text");
            Check(encoding.Tokens.Length == encoding.Ids.Length && tokenizer.VocabSize > 100, "tokens");
            Same(tokenizer.Encode("a b c d", new EncodeOptions { Truncation = Vkf.VKF_TO_LENGTH, MaxLength = 2 }).Ids.Length, 2, "length");
            using (var grammar = new Grammar("root ::= \"yes\" | \"no\""))
            using (var model = new Model(device, Plays))
            using (var session = new Session(model))
            using (Constraint constraint = grammar.Constrain(tokenizer, Math.Max(model.Info.TargetVocab, model.Info.SourceVocab), Eos(session)))
            {
                long[] prompt = tokenizer.Encode("ROMEO:").Ids;
                long[] ids = session.Generate(new[] { prompt }, new GenerateOptions { Constraint = constraint })[0][0].Ids.Skip(prompt.Length).ToArray();
                string text = tokenizer.Decode(ids);
                Check(text == "yes" || text == "no", text);
            }
        }
        using (Grammar number = Grammar.FromJsonSchema("{\"type\": \"integer\"}")) Check(number.Matches("42") && !number.Matches("x"), "schema");
        using (ChatTemplate template = ChatTemplate.Parse("{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}", "{\"bos_token\": \"<s>\"}"))
        {
            Same(template.Render(new[] { new Message("user", "hi") }), "<s>user:hi;", "rendered");
            using (var generator = new Generator(device, Plays))
            {
                var chat = new Chat(generator, template, "be brief");
                string answer = chat.Say("hello", new TextOptions { MaxNewTokens = 5 });
                Same(chat.Messages.Count, 3, "messages");
                Same(chat.Messages[2].Content, answer, "answer");
                Fails(() => chat.Say("x", new TextOptions { Beams = -1 }));
                Same(chat.Messages.Count, 3, "messages");
            }
        }
        using (var own = new ChatTemplate(Task("prompts-llava"))) Check(own.Render(new[] { new Message("user", "x") }).Length > 0, "a model's template");
    }

    private static long[] Eos(Session session)
    {
        vkf_generate_options options = new vkf_generate_options { struct_size = (uint)sizeof(vkf_generate_options) };
        using (VkfErrorHandle error = Native.vkf_error_create())
        {
            Same(Native.vkf_session_generation_defaults(session.Handle, &options, error), 0, "defaults");
        }
        var ids = new long[(int)options.eos.count];
        for (int i = 0; i < ids.Length; ++i) ids[i] = options.eos.ids[i];
        return ids;
    }

    private static void Streams()
    {
        using (var generator = new Generator(device, Plays))
        {
            var options = new TextOptions { MaxNewTokens = 200 };
            string whole = generator.Generate("ROMEO:", options);
            Same(string.Concat(generator.Stream("ROMEO:", options)), whole, "foreach");
            Same(Reading.ReadAsync(generator.Stream("ROMEO:", options), int.MaxValue, CancellationToken.None).Result, whole, "await foreach");
            for (int most = 0; most < 4; ++most)  // left early
            {
                TextStream stream = generator.Stream("ROMEO:", options);
                string text = Reading.ReadAsync(stream, most, CancellationToken.None).Result;
                Check(whole.StartsWith(text) && text.Length < whole.Length && stream.Result.IsCompleted, "the beginning");
            }
            foreach (string piece in generator.Stream("ROMEO:", options)) { Check(whole.StartsWith(piece), "the first piece"); break; }
            using (var cancel = new CancellationTokenSource(50))
            {
                TextStream stream = generator.Stream("ROMEO:", options, cancel.Token);
                Thread.Sleep(300);
                Throws<OperationCanceledException>(() => Reading.ReadAsync(stream, int.MaxValue, CancellationToken.None).GetAwaiter().GetResult());
            }
            using (var cancel = new CancellationTokenSource())
            {
                TextStream stream = generator.Stream("ROMEO:", options);
                cancel.Cancel();
                Throws<OperationCanceledException>(() => Reading.ReadAsync(stream, int.MaxValue, cancel.Token).GetAwaiter().GetResult());
            }
            TextStream once = generator.Stream("ROMEO:", new TextOptions { MaxNewTokens = 3 });
            once.Count();
            Throws<InvalidOperationException>(() => once.Count());
            Fails(() => generator.Stream("ROMEO:", new TextOptions { MaxNewTokens = -1 }).Count());
            Same(generator.Generate("ROMEO:", options), whole, "still the same");
        }
    }

    private static void WrongArguments()
    {
        Throws<ArgumentNullException>(() => new Model(null, G2p));
        Throws<ArgumentNullException>(() => new Model(device, (string)null));
        Throws<ArgumentNullException>(() => new Session(null));
        Throws<ArgumentNullException>(() => new Tokenizer(null));
        Throws<ArgumentException>(() => new Tokenizer("a\0b"));
        Throws<ArgumentException>(() => new Tokenizer("\ud800"));
        Same(Fails(() => new Tokenizer("absent")), Status.NotFound, "status");
        Same(Fails(() => new Generator(device, "absent")), Status.NotFound, "status");
        Same(Fails(() => new Device(new DeviceOptions { Device = "no such device" })), Status.NotFound, "status");
        Same(Fails(() => new Transcriber(device, G2p)), Status.Unsupported, "status");
        Same(Fails(() => new Image(new byte[] { 1, 2, 3 })), Status.Unsupported, "status");
        Fails(() => new Image(new byte[5], 2, 2, Vkf.VKF_RGB8));
        Same(Fails(() => new Audio("absent.wav")), Status.NotFound, "status");
        Fails(() => new Grammar("root ::= ("));
        using (var generator = new Generator(device, G2p))
        {
            Throws<ArgumentNullException>(() => generator.Generate((string[])null));
            Throws<ArgumentException>(() => generator.Generate(new[] { "a", null }));
            Throws<ArgumentNullException>(() => generator.Stream(null));
            Same(Fails(() => generator.Generate("a", new TextOptions { Beams = 0 })), Status.InvalidArgument, "status");
            Fails(() => generator.Generate("a", new TextOptions { EarlyStopping = "perhaps" }));
            Throws<ArgumentException>(() => generator.Generate("a", new TextOptions { Stop = new string[] { null } }));
        }
        using (var tensors = new Tensors())
        {
            Throws<ArgumentException>(() => tensors.Set("a", new float[3], 2, 2));
            Throws<ArgumentNullException>(() => tensors.Set(null, new float[3]));
            Same(Fails(() => tensors.Floats("absent")), Status.NotFound, "status");
        }
    }

    private static void Disposed()
    {
        var model = new Model(device, G2p);
        var session = new Session(model);
        var generator = new Generator(device, G2p);
        var tokenizer = new Tokenizer(G2p);
        var image = new Image(Task("picture-0.png"));
        var tensors = new Tensors();
        model.Dispose();
        Check(session.Generate(new[] { new long[] { 5, 6 } })[0].Length == 1, "a session keeps its model");
        foreach (IDisposable one in new IDisposable[] { model, session, generator, tokenizer, image, tensors }) { one.Dispose(); one.Dispose(); }
        Check(model.IsDisposed && session.IsDisposed, "disposed");
        Throws<ObjectDisposedException>(() => Console.Write(model.WeightBytes));
        Throws<ObjectDisposedException>(() => new Session(model));
        Throws<ObjectDisposedException>(() => session.Generate(new[] { new long[] { 5 } }));
        Throws<ObjectDisposedException>(() => generator.Generate("a"));
        Throws<ObjectDisposedException>(() => tokenizer.Encode("a"));
        Throws<ObjectDisposedException>(() => Console.Write(image.Width));
        Throws<ObjectDisposedException>(() => tensors.Set("a", new float[1]));
        using (var captioner = new Captioner(device, Task("captions"))) Throws<ObjectDisposedException>(() => captioner.Caption(new[] { image }));
    }

    private static void Threads()
    {
        string[] words = { "all", "attention", "you", "need", "is" };
        using (var model = new Model(device, G2p))
        using (var session = new Session(model))
        using (var tokenizer = new Tokenizer(G2p))
        using (var generator = new Generator(device, G2p))
        {
            string[] right = words.Select(word => generator.Generate(word)).ToArray();
            Parallel.For(0, 40, i =>
            {
                int k = i % words.Length;
                Same(generator.Generate(words[k]), right[k], words[k]);
                Same(tokenizer.Decode(session.Generate(new[] { tokenizer.Encode(words[k]).Ids })[0][0].Ids), right[k], words[k]);
            });
        }
        for (int round = 0; round < 10; ++round)
        {
            var generator = new Generator(device, G2p);
            Task[] workers = Enumerable.Range(0, 2).Select(_ => System.Threading.Tasks.Task.Run(() =>
            {
                try { while (true) generator.Generate("all"); }
                catch (ObjectDisposedException) { }
            })).ToArray();
            Thread.Sleep(5 * round);
            generator.Dispose();
            System.Threading.Tasks.Task.WaitAll(workers);
        }
    }

    private static void Callbacks()
    {
        using (var generator = new Generator(device, G2p))
        {
            Throws<BusyException>(() => generator.Generate(new[] { "all" }, null, (i, s, piece) => generator.Generate("you") != null));
            Throws<DivideByZeroException>(() => generator.Generate(new[] { "all" }, null, (i, s, piece) => { throw new DivideByZeroException("thrown by a callback"); }));
            Check(generator.Generate(new[] { "attention" }, null, (i, s, piece) => false)[0][0].Text.Length < 20, "ended early");
            generator.Generate(new[] { "all" }, null, (i, s, piece) => { generator.Dispose(); return true; });
            Throws<ObjectDisposedException>(() => generator.Generate("all"));
        }
    }

    private static void Batches()
    {
        using (var model = new Model(device, Plays))
        using (var tokenizer = new Tokenizer(Plays))
        using (var session = new Session(model))
        using (var batch = new Batch(model, new BatchOptions { Rows = 2, Capacity = 64, Waiting = 2 }))
        {
            long[][] prompts = new[] { "ROMEO:", "JULIET:", "NURSE:" }.Select(text => tokenizer.Encode(text).Ids).ToArray();
            var options = new GenerateOptions { MaxNewTokens = 5 };
            var found = new Dictionary<ulong, List<long>>();
            foreach (long[] prompt in prompts.Take(2)) found[batch.Submit(prompt, options, "me")] = new List<long>();
            Same(Fails(() => batch.Submit(prompts[2], options)), Status.QueueFull, "status");
            while (!batch.Idle) foreach (BatchUpdate update in batch.Step()) found[update.Request].AddRange(update.Tokens);
            List<long>[] texts = found.OrderBy(pair => pair.Key).Select(pair => pair.Value).ToArray();
            for (int i = 0; i < 2; ++i)
            {
                Check(session.Generate(new[] { prompts[i] }, options)[0][0].Ids.Skip(prompts[i].Length).SequenceEqual(texts[i]), "as alone");
            }
            ulong third = batch.Submit(prompts[2], new GenerateOptions { MaxNewTokens = 50 });
            batch.Step();
            batch.Cancel(third);
            int last = 0;
            while (!batch.Idle) foreach (BatchUpdate update in batch.Step()) last = update.State;
            Same(last, Vkf.VKF_REQUEST_CANCELLED, "state");
            Check(batch.Counters.NewTokens >= 10, "counters");
        }
    }

    private static void BatchesWithImages()
    {
        using (var model = new Model(device, Task("prompts-smolvlm")))
        using (var source = new Source(Task("prompts-smolvlm")))
        using (var prompts = new ImagePrompts(model, source))
        using (var picture = new Image(Task("picture-0.png")))
        using (var session = new Session(model))
        using (var batch = new Batch(model, new BatchOptions { Rows = 2, Capacity = 128 }))
        {
            Same(prompts.Placeholder, "<image>", "placeholder");
            using (Tensors inputs = prompts.Read("<image>What is this?", new[] { picture }))
            {
                var options = new GenerateOptions { MaxNewTokens = 8, Beams = 1 };
                ulong shown = batch.Submit(inputs, options);
                batch.Submit(new long[] { 4, 8, 15 }, options);
                var found = new List<long>();
                while (!batch.Idle) foreach (BatchUpdate update in batch.Step()) if (update.Request == shown) found.AddRange(update.Tokens);
                long[] ids = inputs.Ints("input_ids");
                Check(session.Generate(inputs, options)[0][0].Ids.Skip(ids.Length).SequenceEqual(found), "as alone");
            }
            Throws<VkformerException>(() => prompts.Read("a <image>", new Image[0]));
        }
    }

    private static void Maps()
    {
        using (var model = new Model(device, G2p))
        using (var session = new Session(model))
        using (var tokenizer = new Tokenizer(G2p))
        using (var inputs = new Tensors())
        {
            long[] ids = tokenizer.Encode("attention").Ids;
            inputs.Set("input_ids", ids, 1, ids.Length);
            inputs.Set("decoder_input_ids", new long[] { 1 }, 1, 1);
            using (Tensors outputs = session.Run(inputs, new RunOptions { Flags = (uint)Vkf.VKF_RUN_ATTENTIONS }))
            using (var maps = new AttentionMaps(outputs, "cross"))
            using (AttentionMaps mean = maps.Mean())
            using (var encoder = new AttentionMaps(outputs, "encoder"))
            using (AttentionMaps rollout = encoder.Rollout())
            {
                int layer;
                float[] values = maps.Layer(0, out layer);
                Check(Math.Abs(values.Take(maps.Info.Columns).Sum() - 1) < 1e-4 && layer == 0, "a row's sum is 1");
                Check(mean.Info.Heads == 1 && rollout.Info.Layers == 1, "mean and rollout");
                maps.SetLabels(null, tokenizer.Encode("attention").Tokens);
                Throws<ArgumentException>(() => maps.SetLabels(new[] { "a", "b", "c" }, null));
                Check(maps.ToPng(new ViewOptions { Title = "words" })[1] == 'P', "PNG");
                Check(AttentionMaps.ToHtml(new[] { maps, mean }, "words").Contains("<html"), "page");
            }
            using (Tensors scored = session.Run(inputs, new RunOptions { Flags = (uint)(Vkf.VKF_RUN_ATTENTIONS | Vkf.VKF_RUN_SCORES) }))
            using (Tensors outputs = session.Run(inputs, new RunOptions { Flags = (uint)Vkf.VKF_RUN_ENTROPY }))
            using (var scores = new AttentionMaps(scored, "encoder"))
            {
                float[][] entropies = Enumerable.Range(0, (int)scores.Info.Layers).Select(i => outputs.Floats("encoder_attention_entropy." + i)).ToArray();
                Same((long)AttentionMaps.Measure(scores, entropies).Count, scores.Info.Layers * scores.Info.Heads, "heads");
            }
        }
        Check(AttentionMaps.HeatMap(new[] { 0f, 1f, 0.5f, 0.5f }, 2, 2)[1] == 'P', "PNG");
        Throws<ArgumentException>(() => AttentionMaps.HeatMap(new float[3], 2, 2));
        using (var image = new Image(Task("picture-0.png"))) Check(AttentionMaps.Overlay(image, new float[16], 4, 4)[1] == 'P', "PNG");
        using (var weights = new Tensors())
        using (var x = new Tensors())
        {
            foreach (string part in new[] { "query", "key", "value", "output" })
            {
                weights.Set(part + ".weight", Enumerable.Range(0, 64).Select(i => (float)Math.Sin(i)).ToArray(), 8, 8);
                weights.Set(part + ".bias", new float[8], 8);
            }
            x.Set("x", Enumerable.Range(0, 24).Select(i => (float)Math.Cos(i)).ToArray(), 1, 3, 8);
            using (var attention = new MultiHeadAttention(device, weights, new AttentionOptions { DModel = 8, Heads = 2 }))
            using (Tensors outputs = attention.Run(x)) Check(outputs.Shape("output").SequenceEqual(new long[] { 1, 3, 8 }), "shape");
        }
    }

    private static void OperatorsAndMeasuring()
    {
        Check(Operators.Names().Contains("softmax"), "names");
        using (var inputs = new Tensors())
        {
            inputs.Set("X", new[] { 0f, 0f, 1f, 1f }, 2, 2);
            OperatorCosts costs;
            using (Tensors outputs = Operators.Run(device, "softmax", inputs, null, new OperatorOptions { Repeats = 2, Poison = 1 }, out costs))
            {
                Check(outputs.Floats(outputs.Names[0]).All(value => Math.Abs(value - 0.5f) < 1e-6) && costs.Dispatches > 0, "softmax");
            }
            using (var recorded = new RecordedOperator(device, "softmax", inputs))
            {
                Check(recorded.Tensors(Vkf.VKF_OPERATOR_INPUTS)[0].Name == "X" && recorded.Tensors(Vkf.VKF_OPERATOR_OUTPUTS).Count == 1, "what can be bound");
                Fails(() => recorded.Bind(new[] { new BufferRange { Name = "Z", Buffer = 1, Bytes = 16 } }));
                Fails(() => recorded.Record(IntPtr.Zero));
            }
        }
        Check(Measuring.Roofline(device).FmaGflops > 0, "roofline");
        using (var own = new Device(DeviceChoice()))
        {
            Measuring.StartProfile(own);
            using (var generator = new Generator(own, G2p)) generator.Generate("all");
            Check(Measuring.TakeProfile(own).All(time => time.Kernel.Length > 0), "times");
            Measuring.StopProfile(own);
        }
        string folder = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
        DeviceOptions cached = DeviceChoice();
        cached.CacheDirectory = folder;
        using (var own = new Device(cached))
        {
            string file;
            Check(Measuring.Tune(own, new TuneOptions { Quick = 1, MsPerChoice = 0.05 }, out file).Count > 0 && File.Exists(file), "tuner");
        }
        Directory.Delete(folder, true);
        long failed;
        string report = Measuring.Conformance(device, new ConformanceOptions { Filters = new[] { "softmax" }, Repeats = 1 }, out failed);
        Same(failed, 0L, "failed checks");
        Check(Measuring.ConformancePage(report).Contains("<html"), "page");
    }

    private sealed class Reader : IFileReader
    {
        public bool Broken;
        public long Size(string name) { string file = Path.Combine(G2p, name); return File.Exists(file) ? new FileInfo(file).Length : -1; }

        public void Read(string name, ulong offset, Span<byte> target)
        {
            if (Broken) throw new IOException("the disk is gone");
            File.ReadAllBytes(Path.Combine(G2p, name)).AsSpan((int)offset, target.Length).CopyTo(target);
        }
    }

    private static void Loading()
    {
        using (var source = new Source(new Reader()))
        using (var load = new Load(device, source, new ModelOptions { FirstUse = new SessionSizes { Tokens = 8, NewTokens = 4 } }))
        using (Model model = load.WaitAsync().Result)
        {
            ulong total;
            Check(load.Done && load.Progress(out total) == total && model.Plan(new PlanOptions { Pass = "step" }).Length > 100, "loaded");
            Same(Directories.Needs(device, source, new SessionSizes { Tokens = 8 }).Weights, model.WeightBytes, "bytes");
        }
        using (var source = new Source(G2p))
        using (var load = new Load(device, source, new ModelOptions { Paced = 1 }))
        {
            while (!load.Done) load.Advance(1000);
            using (Model paced = load.Wait()) Same(paced.Info.Family, "marian", "family");
        }
        using (var source = new Source(G2p))
        using (var load = new Load(device, source))
        {
            load.Cancel();
            try { load.Wait().Dispose(); }
            catch (VkformerException failure) { Same(failure.Status, Status.Cancelled, "status"); }
        }
        using (var broken = new Source(new Reader { Broken = true }))
        {
            Fails(() => new Model(device, broken));
            Check(broken.Failure is IOException, "what the reader threw");
        }
        Same((long)Directories.Tensors(G2p).Count, Directories.Describe(G2p).TensorCount, "tensors");
        Check(Directories.PromptTokens(Task("speech")).Count > 0, "prompt tokens");
        string target = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
        QuantizeReport report = Directories.Quantize(Plays, target, new QuantizeOptions { Weights = "q8" });
        Check(report.BytesAfter < report.BytesBefore, "smaller");
        Directory.Delete(target, true);
        PackReport pack = Directories.Pack(Plays, target);
        Same(pack.Size, (ulong)new FileInfo(target).Length, "bytes of a pack");
        Same(pack.Sha256.Length, 32, "bytes of a hash");
        Same((long)Directories.Describe(target).TensorCount, (long)Directories.Describe(Plays).TensorCount, "packed tensors");
        Check(Directories.Pack(Plays, target, new PackOptions { DeviceLayout = 1 }).Files > pack.Files, "weights apart");
        File.Delete(target);
        Fails(() => Directories.WriteGguf(Plays, target, new GgufOptions { Weights = "q8" }));
    }

    private static void Streaming()
    {
        using (var tokenizer = new Tokenizer(Plays))
        using (Tokenizer parsed = Tokenizer.Parse(File.ReadAllBytes(Path.Combine(Plays, "tokenizer.json"))))
        using (var stream = new DecodeStream(tokenizer))
        using (var stops = new StopStrings(new[] { "end" }))
        {
            long[] ids = parsed.Encode("To be, or not").Ids;
            Same(string.Concat(ids.Select(stream.Push)) + stream.Finish(), tokenizer.Decode(ids), "text");
            Same(tokenizer.TokenToId(tokenizer.IdToToken(ids[0])), ids[0], "id");
            Check(tokenizer.TokenBytes(ids[0]).Length > 0, "bytes");
            Same(stops.Push("an en") + stops.Push("dless"), "an ", "text");
            Check(stops.Stopped && stops.Finish() == "", "stopped");
            Fails(() => tokenizer.TokenToId("no such token"));
        }
        using (var tokenizer = new Tokenizer(Task("labels"))) Check(tokenizer.EncodePair("one", "two").Ids.Length > 2, "a pair");
        Dictionary<string, byte[]> files = Directory.GetFiles(Task("prompts-llava")).ToDictionary(Path.GetFileName, File.ReadAllBytes);
        using (var source = new Source(files))
        using (var template = new ChatTemplate(source)) Check(template.Render(new[] { new Message("user", "x") }).Length > 0, "template");
    }

    private static void PartsOfAPass()
    {
        using (var audio = Audio.Decode(File.ReadAllBytes(Task("sound-0.wav"))))
        using (Audio half = audio.Resample(audio.SamplingRate / 2))
        using (var mel = new LogMel(Task("speech")))
        using (Tensors features = mel.Run(audio))
        {
            Check(half.ToSamples().Length == half.Count && Math.Abs(half.Count * 2 - audio.Count) < 4, "samples");
            Same(features.Shape("input_features")[1], mel.Info.MelBands, "bands");
        }
        using (var own = new ImageProcessor(new ImageSettings { Width = 8, Height = 6, Mean = new double[3], Std = new double[] { 1, 1, 1 } }))
        using (var processor = new ImageProcessor(Task("picture-labels")))
        using (var image = new Image(Task("picture-0.png")))
        using (Tensors small = own.Run(new[] { image }))
        using (Tensors inputs = processor.Run(new[] { image }))
        using (var model = new Model(device, Task("picture-labels")))
        using (var session = new Session(model))
        {
            Check(small.Shape("pixel_values").SequenceEqual(new long[] { 1, 3, 6, 8 }) && own.Settings.width == 8 && own.Seen(8, 6).Length == 4, "settings");
            Throws<ArgumentException>(() => new ImageProcessor(new ImageSettings { Mean = new double[2] }));
            session.Start(inputs);
            Check(session.PassBuffers().Count > 0, "buffers");
            session.Cancel();
            session.ForgetBuffers();
            Fails(() => session.Start(inputs, new[] { new BufferRange { Name = "pixel_values", Buffer = 0, Bytes = 4 } }));
            Fails(() => session.Start(new vkf_image_input[1], processor));
            Fails(() => session.Record(IntPtr.Zero, 1000));
        }
        using (var model = new Model(device, G2p))
        using (var session = new Session(model))
        using (var tokenizer = new Tokenizer(G2p))
        using (var prompt = new Tensors())
        {
            long[] ids = tokenizer.Encode("attention").Ids;
            prompt.Set("input_ids", ids, 1, ids.Length);
            Sequence found = session.Generate(prompt)[0][0];
            Check(session.Generate(new[] { ids }, session.GenerationDefaults)[0][0].Ids.SequenceEqual(found.Ids), "defaults");
            Check(session.Counters.Steps > 0, "counters");
            float[] scores = session.Score(ids, found.Ids.Skip(1).ToArray());
            Check(Math.Abs(scores.Sum() - found.LogProbabilities.Sum()) < 1e-2, "scores");
        }
        var host = new vkf_adopted_device();
        Fails(() => { using (new FeatureChain(ref host)) { } });
        Fails(() => Device.Adopt(host));
    }

    private static void Memory()
    {
        Action once = () =>
        {
            using (var generator = new Generator(device, G2p))
            {
                generator.Generate("all");
                foreach (string piece in generator.Stream("attention")) break;
            }
            Fails(() => new Tokenizer("absent"));
            GC.Collect();
            GC.WaitForPendingFinalizers();
        };
        Func<long> resident = () => long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * 4096;
        for (int i = 0; i < 3; ++i) once();
        ulong before = device.MemoryInUse;
        long host = resident();
        for (int i = 0; i < 15; ++i) once();
        Same(device.MemoryInUse, before, "device memory");
        Check(resident() - host < 30 << 20, "host memory grew by " + (resident() - host));
    }
}
