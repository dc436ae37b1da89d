// Many generations at once.
using System;
using System.Collections.Generic;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Prompts with images as tensors, for a model that is loaded already. Read may be called from any
    /// thread.</summary>
    public sealed unsafe class ImagePrompts : NativeObject<VkfImagePromptsHandle>
    {
        /// <summary>`source` has the model's files.</summary>
        public ImagePrompts(Model model, Source source)
        {
            if (model == null) throw new ArgumentNullException("model");
            if (source == null) throw new ArgumentNullException("source");
            VkfImagePromptsHandle made;
            Library.Check(Native.vkf_image_prompts_load(model.Handle, source.Handle, out made, Library.Error));
            Handle = made;
        }

        /// <summary>What stands for an image in a prompt, such as "&lt;image&gt;"; empty of a model that describes
        /// an image.</summary>
        public string Placeholder
        {
            get
            {
                string text = Utf8.Read(Native.vkf_image_prompts_placeholder(Handle));
                GC.KeepAlive(this);
                return text;
            }
        }

        /// <summary>Tensors with "input_ids" (1,T) and those of the images, for Batch.Submit and Session.Generate. A
        /// text without placeholders has its images before it. Of a model that describes an image, the text is what
        /// the description begins with, for Batch.Submit alone. Without one there are no "input_ids".</summary>
        public Tensors Read(string text, IReadOnlyList<Image> images)
        {
            using (var arena = new Arena())
            {
                var prompt = new vkf_prompt { text = arena.Text(text), pictures = arena.Handles(ModelTask.Handles(images)), picture_count = (UIntPtr)images.Count };
                VkfTensorsHandle made;
                Library.Check(Native.vkf_image_prompts_read(Handle, &prompt, out made, Library.Error));
                return new Tensors(made);
            }
        }
    }

    /// <summary>Requests that join and leave a running batch. Submit and Cancel may be called from any thread, also
    /// while another one steps.</summary>
    public sealed unsafe class Batch : NativeObject<VkfBatchHandle>
    {
        private readonly Turn turn = new Turn();

        public Batch(Model model, BatchOptions options = null)
        {
            if (model == null) throw new ArgumentNullException("model");
            using (var arena = new Arena())
            {
                VkfBatchHandle made;
                Library.Check(Native.vkf_batch_create(model.Handle, arena.Put((options ?? new BatchOptions()).Fill(arena)), out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>The request's number. Status.QueueFull: take steps, then submit it again.</summary>
        public ulong Submit(long[] prompt, GenerateOptions options = null, string client = null)
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            return Submit(prompt, null, options, client);
        }

        /// <summary>The same of a prompt with images, as ImagePrompts.Read gives it.</summary>
        public ulong Submit(Tensors prompt, GenerateOptions options = null, string client = null)
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            return Submit(new long[0], prompt, options, client);
        }

        private ulong Submit(long[] prompt, Tensors inputs, GenerateOptions options, string client)
        {
            using (var arena = new Arena())
            {
                var request = new vkf_batch_request
                {
                    struct_size = (uint)sizeof(vkf_batch_request), prompt = arena.Ids(prompt), client = arena.Text(client),
                    options = options == null ? null : arena.Put(options.Fill(arena)),
                    inputs = arena.HoldIfAny(inputs == null ? null : inputs.Handle)
                };
                ulong number;
                Library.Check(Native.vkf_batch_submit(Handle, &request, &number, Library.Error));
                return number;
            }
        }

        /// <summary>Ends a request that waits or runs; the next step tells of it.</summary>
        public void Cancel(ulong request) { Library.Check(Native.vkf_batch_cancel(Handle, request, Library.Error)); }

        /// <summary>Lets requests join, takes one step, and tells what came of it.</summary>
        public IReadOnlyList<BatchUpdate> Step()
        {
            return turn.Take(() =>
            {
                VkfUpdatesHandle updates;
                Library.Check(Native.vkf_batch_step(Handle, out updates, Library.Error));
                using (updates)
                {
                    var all = new List<BatchUpdate>();
                    for (ulong i = 0; i < (ulong)Native.vkf_updates_count(updates); ++i)
                    {
                        var one = new vkf_batch_update { struct_size = (uint)sizeof(vkf_batch_update) };
                        Library.Check(Native.vkf_updates_get(updates, (UIntPtr)i, &one, Library.Error));
                        all.Add(BatchUpdate.Of(&one));
                    }
                    return (IReadOnlyList<BatchUpdate>)all;
                }
            });
        }

        /// <summary>Whether nobody waits, runs or has an update left.</summary>
        public bool Idle { get { return Native.vkf_batch_idle(Handle) != 0; } }

        public BatchCounters Counters
        {
            get
            {
                var counters = new vkf_batch_counters { struct_size = (uint)sizeof(vkf_batch_counters) };
                Library.Check(Native.vkf_batch_count(Handle, &counters, Library.Error));
                return BatchCounters.Of(&counters);
            }
        }
    }
}
