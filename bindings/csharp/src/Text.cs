// Tokenizers, grammars, chat templates.
using System;
using System.Collections.Generic;
using System.Linq;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>One encoded text; all arrays are as long as it has tokens.</summary>
    public sealed class Encoding
    {
        public long[] Ids { get; internal set; }
        public string[] Tokens { get; internal set; }
        /// <summary>Where each token begins, in code points of its text.</summary>
        public int[] Begins { get; internal set; }
        public int[] Ends { get; internal set; }
        public int[] AttentionMask { get; internal set; }
    }

    /// <summary>Texts to token ids and back. It never changes.</summary>
    public sealed unsafe class Tokenizer : NativeObject<VkfTokenizerHandle>
    {
        public Tokenizer(string path)
        {
            VkfTokenizerHandle made;
            Library.Check(Native.vkf_tokenizer_load(Utf8.Needed(path, "path"), out made, Library.Error));
            Handle = made;
        }

        private Tokenizer(VkfTokenizerHandle handle) : base(handle) { }

        /// <summary>From the content of a tokenizer.json.</summary>
        public static Tokenizer Parse(byte[] json, string name = "tokenizer.json")
        {
            if (json == null) throw new ArgumentNullException("json");
            fixed (byte* at = json)
            {
                VkfTokenizerHandle made;
                Library.Check(Native.vkf_tokenizer_parse(at, (UIntPtr)json.Length, Utf8.Bytes(name), out made, Library.Error));
                return new Tokenizer(made);
            }
        }

        public Encoding Encode(string text, EncodeOptions options = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            return Encode(new[] { text }, options)[0];
        }

        public IReadOnlyList<Encoding> Encode(IReadOnlyList<string> texts, EncodeOptions options = null)
        {
            using (var arena = new Arena())
            {
                VkfEncodingsHandle encodings;
                Library.Check(Native.vkf_tokenizer_encode(Handle, arena.Texts(texts), (UIntPtr)texts.Count,
                    arena.Put((options ?? new EncodeOptions()).Fill(arena)), out encodings, Library.Error));
                return Read(encodings);
            }
        }

        /// <summary>One encoding of two texts that belong together.</summary>
        public Encoding EncodePair(string first, string second, EncodeOptions options = null)
        {
            using (var arena = new Arena())
            {
                VkfEncodingsHandle encodings;
                Library.Check(Native.vkf_tokenizer_encode_pair(Handle, Utf8.Needed(first, "first"), Utf8.Needed(second, "second"),
                    arena.Put((options ?? new EncodeOptions()).Fill(arena)), out encodings, Library.Error));
                return Read(encodings)[0];
            }
        }

        private static IReadOnlyList<Encoding> Read(VkfEncodingsHandle encodings)
        {
            using (encodings)
            {
                var all = new List<Encoding>();
                for (ulong i = 0; i < (ulong)Native.vkf_encodings_count(encodings); ++i)
                {
                    var one = new vkf_encoding { struct_size = (uint)sizeof(vkf_encoding) };
                    Library.Check(Native.vkf_encodings_get(encodings, (UIntPtr)i, &one, Library.Error));
                    int count = (int)one.count;
                    all.Add(new Encoding
                    {
                        Ids = Copy.Of(one.ids, count), Tokens = Utf8.ReadAll(one.tokens, count), Begins = Copy.Of(one.begins, count),
                        Ends = Copy.Of(one.ends, count), AttentionMask = Copy.Of(one.attention_mask, count)
                    });
                }
                return all;
            }
        }

        public string Decode(long[] ids, bool specialTokens = false)
        {
            using (var arena = new Arena())
            {
                VkfBytesHandle text;
                Library.Check(Native.vkf_tokenizer_decode(Handle, arena.Ids(ids), specialTokens ? (uint)Vkf.VKF_DECODE_SPECIAL_TOKENS : 0, out text, Library.Error));
                return Utf8.Take(text);
            }
        }

        /// <summary>Throws with Status.NotFound if there is no such token.</summary>
        public long TokenToId(string token)
        {
            long id;
            Library.Check(Native.vkf_tokenizer_token_to_id(Handle, Utf8.Needed(token, "token"), &id, Library.Error));
            return id;
        }

        /// <summary>Throws with Status.NotFound if there is no such id.</summary>
        public string IdToToken(long id)
        {
            VkfBytesHandle token;
            Library.Check(Native.vkf_tokenizer_id_to_token(Handle, id, out token, Library.Error));
            return Utf8.Take(token);
        }

        /// <summary>The bytes that a token adds to a decoded text after others: not always whole characters.</summary>
        public byte[] TokenBytes(long id)
        {
            VkfBytesHandle bytes;
            Library.Check(Native.vkf_tokenizer_token_bytes(Handle, id, out bytes, Library.Error));
            return Utf8.TakeBytes(bytes);
        }

        public long VocabSize { get { return (long)Native.vkf_tokenizer_vocab_size(Handle); } }
    }

    /// <summary>What may be written.</summary>
    public sealed unsafe class Grammar : NativeObject<VkfGrammarHandle>
    {
        /// <summary>GBNF, whose whole text matches the rule `root`.</summary>
        public Grammar(string gbnf, string root = null)
        {
            VkfGrammarHandle made;
            Library.Check(Native.vkf_grammar_from_gbnf(Utf8.Needed(gbnf, "gbnf"), Utf8.Bytes(root), out made, Library.Error));
            Handle = made;
        }

        private Grammar(VkfGrammarHandle handle) : base(handle) { }

        /// <summary>JSON that is valid for a schema.</summary>
        public static Grammar FromJsonSchema(string schema)
        {
            VkfGrammarHandle made;
            Library.Check(Native.vkf_grammar_from_json_schema(Utf8.Needed(schema, "schema"), out made, Library.Error));
            return new Grammar(made);
        }

        public bool Matches(string text)
        {
            int matches;
            Library.Check(Native.vkf_grammar_matches(Handle, Utf8.Needed(text, "text"), &matches, Library.Error));
            return matches != 0;
        }

        /// <summary>The grammar with the tokens of a model, whose logits are `width` wide.</summary>
        public Constraint Constrain(Tokenizer tokenizer, long width, params long[] ends)
        {
            using (var arena = new Arena())
            {
                VkfConstraintHandle made;
                Library.Check(Native.vkf_constraint_create(Handle, tokenizer.Handle, width, arena.Ids(ends), out made, Library.Error));
                return new Constraint(made);
            }
        }
    }

    /// <summary>A grammar with the tokens of a model, for GenerateOptions.Constraint.</summary>
    public sealed class Constraint : NativeObject<VkfConstraintHandle>
    {
        internal Constraint(VkfConstraintHandle handle) : base(handle) { }
    }

    /// <summary>One message of a conversation.</summary>
    public sealed class Message
    {
        public Message(string role, string content) { Role = role; Content = content; }
        /// <summary>"system", "user", "assistant".</summary>
        public string Role { get; private set; }
        public string Content { get; private set; }
    }

    /// <summary>How a model wants a conversation as a text.</summary>
    public sealed unsafe class ChatTemplate : NativeObject<VkfChatTemplateHandle>
    {
        public ChatTemplate(string directory)
        {
            VkfChatTemplateHandle made;
            Library.Check(Native.vkf_chat_template_load(Utf8.Needed(directory, "directory"), out made, Library.Error));
            Handle = made;
        }

        public ChatTemplate(Source source)
        {
            if (source == null) throw new ArgumentNullException("source");
            VkfChatTemplateHandle made;
            Library.Check(Native.vkf_chat_template_load_from(source.Handle, out made, Library.Error));
            GC.KeepAlive(source);
            Handle = made;
        }

        private ChatTemplate(VkfChatTemplateHandle handle) : base(handle) { }

        /// <summary>A template by its text; special tokens as a JSON object or null.</summary>
        public static ChatTemplate Parse(string text, string specialTokens = null)
        {
            VkfChatTemplateHandle made;
            Library.Check(Native.vkf_chat_template_parse(Utf8.Needed(text, "text"), Utf8.Bytes(specialTokens), out made, Library.Error));
            return new ChatTemplate(made);
        }

        public string Render(IReadOnlyList<Message> messages)
        {
            using (var arena = new Arena())
            {
                var rows = (vkf_message*)arena.Room(messages.Count * sizeof(vkf_message));
                for (int i = 0; i < messages.Count; ++i)
                {
                    rows[i] = new vkf_message { role = arena.Text(messages[i].Role), content = arena.Text(messages[i].Content) };
                }
                VkfBytesHandle text;
                Library.Check(Native.vkf_chat_template_render(Handle, rows, (UIntPtr)messages.Count, out text, Library.Error));
                return Utf8.Take(text);
            }
        }
    }
}
