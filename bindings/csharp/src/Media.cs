// Images and audio.
using System;
using System.Collections.Generic;
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

        internal Audio(VkfSoundHandle handle) : base(handle) { }

        /// <summary>Of a WAV file's bytes.</summary>
        public static Audio Decode(byte[] wav, int samplingRate = 0)
        {
            if (wav == null) throw new ArgumentNullException("wav");
            using (var arena = new Arena())
            {
                var file = new vkf_file { name = arena.Text("memory"), data = arena.Pin(wav), size = (UIntPtr)wav.Length };
                VkfSoundHandle made;
                Library.Check(Native.vkf_sound_decode(&file, samplingRate, out made, Library.Error));
                return new Audio(made);
            }
        }

        /// <summary>The audio at another rate.</summary>
        public Audio Resample(int samplingRate)
        {
            VkfSoundHandle made;
            Library.Check(Native.vkf_sound_resample(Handle, samplingRate, out made, Library.Error));
            return new Audio(made);
        }

        /// <summary>Writes a WAV file of 16-bit samples.</summary>
        public void Save(string path)
        {
            Library.Check(Native.vkf_sound_save(Handle, Utf8.Needed(path, "path"), Library.Error));
            GC.KeepAlive(this);
        }

        /// <summary>A copy of the samples.</summary>
        public float[] ToSamples()
        {
            float[] copy = Copy.Of(Native.vkf_sound_samples(Handle), checked((int)Count));
            GC.KeepAlive(this);
            return copy;
        }

        public long Count { get { return (long)Native.vkf_sound_count(Handle); } }
        public int SamplingRate { get { return Native.vkf_sound_sampling_rate(Handle); } }
    }

    /// <summary>Makes a model's inputs of images.</summary>
    public sealed unsafe class ImageProcessor : NativeObject<VkfPictureProcessorHandle>
    {
        /// <summary>As a model's directory says.</summary>
        public ImageProcessor(string directory)
        {
            VkfPictureProcessorHandle made;
            Library.Check(Native.vkf_picture_processor_load(Utf8.Needed(directory, "directory"), out made, Library.Error));
            Handle = made;
        }

        public ImageProcessor(ImageSettings settings)
        {
            using (var arena = new Arena())
            {
                VkfPictureProcessorHandle made;
                Library.Check(Native.vkf_picture_processor_create(arena.Put(settings.Fill(arena)), out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>What happens to each image; see vkf_picture_settings.</summary>
        public vkf_picture_settings Settings
        {
            get
            {
                var settings = new vkf_picture_settings { struct_size = (uint)sizeof(vkf_picture_settings) };
                Library.Check(Native.vkf_picture_processor_settings(Handle, &settings, Library.Error));
                return settings;
            }
        }

        /// <summary>Which part of an image of that size the model sees: left, top, width, height.</summary>
        public double[] Seen(int width, int height)
        {
            var region = new double[4];
            fixed (double* at = region) Library.Check(Native.vkf_picture_processor_seen(Handle, width, height, at, Library.Error));
            return region;
        }

        /// <summary>Tensors with the "pixel_values" of a batch.</summary>
        public Tensors Run(IReadOnlyList<Image> images)
        {
            using (var arena = new Arena())
            {
                VkfTensorsHandle tensors;
                Library.Check(Native.vkf_picture_processor_run(Handle, arena.Handles(ModelTask.Handles(images)), (UIntPtr)images.Count, out tensors, Library.Error));
                return new Tensors(tensors);
            }
        }
    }

    /// <summary>Makes a model's input of audio, as its directory says.</summary>
    public sealed unsafe class LogMel : NativeObject<VkfLogMelHandle>
    {
        public LogMel(string directory)
        {
            VkfLogMelHandle made;
            Library.Check(Native.vkf_log_mel_load(Utf8.Needed(directory, "directory"), out made, Library.Error));
            Handle = made;
        }

        public LogMelInfo Info
        {
            get
            {
                var info = new vkf_log_mel_info { struct_size = (uint)sizeof(vkf_log_mel_info) };
                Library.Check(Native.vkf_log_mel_get_info(Handle, &info, Library.Error));
                return LogMelInfo.Of(&info);
            }
        }

        /// <summary>Tensors with the "input_features" of one stretch of audio.</summary>
        public Tensors Run(Audio audio)
        {
            if (audio == null) throw new ArgumentNullException("audio");
            VkfTensorsHandle tensors;
            Library.Check(Native.vkf_log_mel_run(Handle, audio.Handle, out tensors, Library.Error));
            return new Tensors(tensors);
        }
    }
}
