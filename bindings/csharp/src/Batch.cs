// Many generations at once.
using System;
using System.Collections.Generic;
using Vkformer.Interop;

namespace Vkformer
{
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
            using (var arena = new Arena())
            {
                var request = new vkf_batch_request
                {
                    struct_size = (uint)sizeof(vkf_batch_request), prompt = arena.Ids(prompt), client = arena.Text(client),
                    options = options == null ? null : arena.Put(options.Fill(arena))
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
