// Texts that arrive token by token.
using System;
using System.Collections.Generic;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Decoding while ids still arrive. It keeps its tokenizer alive.</summary>
    public sealed unsafe class DecodeStream : NativeObject<VkfDecodeStreamHandle>
    {
        private readonly Turn turn = new Turn();

        public DecodeStream(Tokenizer tokenizer, bool specialTokens = false)
        {
            if (tokenizer == null) throw new ArgumentNullException("tokenizer");
            VkfDecodeStreamHandle made;
            Library.Check(Native.vkf_decode_stream_create(tokenizer.Handle, specialTokens ? (uint)Vkf.VKF_DECODE_SPECIAL_TOKENS : 0, out made, Library.Error));
            Handle = made;
        }

        /// <summary>The text that is certain with this id; often empty.</summary>
        public string Push(long id)
        {
            return turn.Take(() =>
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_decode_stream_push(Handle, id, out text, Library.Error));
                return Utf8.Take(text);
            });
        }

        /// <summary>The rest of the text. The stream is then ready for another one.</summary>
        public string Finish()
        {
            return turn.Take(() =>
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_decode_stream_finish(Handle, out text, Library.Error));
                return Utf8.Take(text);
            });
        }
    }

    /// <summary>Ends a text where the first of several strings is complete, while it still arrives in pieces.</summary>
    public sealed unsafe class StopStrings : NativeObject<VkfStopStringsHandle>
    {
        private readonly Turn turn = new Turn();

        public StopStrings(IReadOnlyList<string> stops)
        {
            using (var arena = new Arena())
            {
                VkfStopStringsHandle made;
                Library.Check(Native.vkf_stop_strings_create(arena.Texts(stops), (UIntPtr)stops.Count, out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>The text that is certain with this piece; nothing once a string was found.</summary>
        public string Push(string piece)
        {
            return turn.Take(() =>
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_stop_strings_push(Handle, Utf8.Needed(piece, "piece"), out text, Library.Error));
                return Utf8.Take(text);
            });
        }

        /// <summary>What was held back, where no string came.</summary>
        public string Finish()
        {
            return turn.Take(() =>
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_stop_strings_finish(Handle, out text, Library.Error));
                return Utf8.Take(text);
            });
        }

        /// <summary>Whether one of the strings came.</summary>
        public bool Stopped { get { return turn.Take(() => Native.vkf_stop_strings_stopped(Handle) != 0); } }
    }
}
