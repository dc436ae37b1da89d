// Images and audio.
using System;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>An image, 8-bit RGB.</summary>
    public sealed unsafe class Image : NativeObject<VkfPictureHandle>
    {
        /// <summary>Of a PNG, JPEG, BMP, GIF or PNM file.</summary>
        public Image(string path)
        {
            VkfPictureHandle made;
            Library.Check(Native.vkf_picture_load(Utf8.Needed(path, "path"), out made, Library.Error));
            Handle = made;
        }

        /// <summary>Of such a file's bytes.</summary>
        public Image(byte[] file)
        {
            if (file == null) throw new ArgumentNullException("file");
            fixed (byte* at = file)
            {
                VkfPictureHandle made;
                Library.Check(Native.vkf_picture_decode(at, (UIntPtr)file.Length, Utf8.Bytes("memory"), out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>Of pixels, the top row first; `format` is Vkf.VKF_RGB8, VKF_RGBA8 and so on.</summary>
        public Image(byte[] pixels, int width, int height, int format)
        {
            if (pixels == null) throw new ArgumentNullException("pixels");
            fixed (byte* at = pixels)
            {
                var given = new vkf_pixels
                {
                    struct_size = (uint)sizeof(vkf_pixels), format = format, bytes = at, byte_count = (UIntPtr)pixels.Length,
                    width = width, height = height
                };
                VkfPictureHandle made;
                Library.Check(Native.vkf_picture_from_pixels(&given, out made, Library.Error));
                Handle = made;
            }
        }

        private vkf_pixels Look()
        {
            var pixels = new vkf_pixels { struct_size = (uint)sizeof(vkf_pixels) };
            Library.Check(Native.vkf_picture_get(Handle, &pixels, Library.Error));
            return pixels;
        }

        public int Width { get { return Look().width; } }
        public int Height { get { return Look().height; } }

        /// <summary>A copy of its pixels, three bytes each.</summary>
        public byte[] ToRgb()
        {
            vkf_pixels pixels = Look();
            byte[] copy = Copy.Of((byte*)pixels.bytes, pixels.width * pixels.height * 3);
            GC.KeepAlive(this);
            return copy;
        }
    }

    /// <summary>One channel of samples, -1 to 1.</summary>
    public sealed unsafe class Audio : NativeObject<VkfSoundHandle>
    {
        /// <summary>Of a WAV file; a rate of 0 leaves it as it is.</summary>
        public Audio(string path, int samplingRate = 0)
        {
            VkfSoundHandle made;
            Library.Check(Native.vkf_sound_load(Utf8.Needed(path, "path"), samplingRate, out made, Library.Error));
            Handle = made;
        }

        public Audio(float[] samples, int samplingRate)
        {
            if (samples == null) throw new ArgumentNullException("samples");
            fixed (float* at = samples)
            {
                VkfSoundHandle made;
                Library.Check(Native.vkf_sound_create(at, (UIntPtr)samples.Length, samplingRate, out made, Library.Error));
                Handle = made;
            }
        }

        public long Count { get { return (long)Native.vkf_sound_count(Handle); } }
        public int SamplingRate { get { return Native.vkf_sound_sampling_rate(Handle); } }
    }
}
