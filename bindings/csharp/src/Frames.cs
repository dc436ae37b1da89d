// Several sessions that share the GPU time of a frame.
using System;
using System.Collections.Generic;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Hands the GPU time of each frame out to sessions by priority and deadline.</summary>
    public sealed unsafe class FrameScheduler : NativeObject<VkfFramesHandle>
    {
        private readonly Turn turn = new Turn();
        // Sessions that the jobs need.
        private readonly Dictionary<ulong, Session> sessions = new Dictionary<ulong, Session>();

        public FrameScheduler()
        {
            VkfFramesHandle made;
            Library.Check(Native.vkf_frames_create(out made, Library.Error));
            Handle = made;
        }

        /// <summary>What the session has started, or starts next; gives the job's number.</summary>
        public ulong Add(Session session, FrameJob job = null)
        {
            if (session == null) throw new ArgumentNullException("session");
            return turn.Take(() =>
            {
                using (var arena = new Arena())
                {
                    ulong number;
                    Library.Check(Native.vkf_frames_add(Handle, session.Handle, arena.Put((job ?? new FrameJob { Priority = Vkf.VKF_JOB_NORMAL }).Fill(arena)), &number, Library.Error));
                    sessions[number] = session;
                    return number;
                }
            });
        }

        /// <summary>The job is not carried on; what its session has started stays started.</summary>
        public void Remove(ulong job)
        {
            turn.Take(() =>
            {
                Library.Check(Native.vkf_frames_remove(Handle, job, Library.Error));
                return sessions.Remove(job);
            });
        }

        /// <summary>Jobs that are not done.</summary>
        public int Count { get { return (int)Native.vkf_frames_count(Handle); } }

        /// <summary>Hands out the GPU time of one frame, in submits of the sessions.</summary>
        public IReadOnlyList<FrameProgress> Advance(double microseconds)
        {
            return turn.Take(() =>
            {
                VkfFrameUpdatesHandle updates;
                Library.Check(Native.vkf_frames_advance(Handle, microseconds, out updates, Library.Error));
                return Read(updates);
            });
        }

        /// <summary>The same into a VkCommandBuffer of the application's.</summary>
        public IReadOnlyList<FrameProgress> Record(IntPtr commandBuffer, double microseconds)
        {
            return turn.Take(() =>
            {
                VkfFrameUpdatesHandle updates;
                Library.Check(Native.vkf_frames_record(Handle, (void*)commandBuffer, microseconds, out updates, Library.Error));
                return Read(updates);
            });
        }

        private IReadOnlyList<FrameProgress> Read(VkfFrameUpdatesHandle updates)
        {
            using (updates)
            {
                var all = new List<FrameProgress>();
                for (ulong i = 0; i < (ulong)Native.vkf_frame_updates_count(updates); ++i)
                {
                    var one = new vkf_frame_progress { struct_size = (uint)sizeof(vkf_frame_progress) };
                    Library.Check(Native.vkf_frame_updates_get(updates, (UIntPtr)i, &one, Library.Error));
                    FrameProgress progress = FrameProgress.Of(&one);
                    if (progress.Error != null || progress.Progress == Vkf.VKF_DONE) sessions.Remove(progress.Job);
                    all.Add(progress);
                }
                return all;
            }
        }
    }
}
