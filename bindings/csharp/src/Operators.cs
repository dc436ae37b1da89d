// Single operators by name, what a device takes for its work, and checks of what it computes.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>Single operators; docs/operators.md has their names, attributes and shapes.</summary>
    public static unsafe class Operators
    {
        public static IReadOnlyList<string> Names()
        {
            VkfStringsHandle names;
            Library.Check(Native.vkf_operator_names(out names, Library.Error));
            using (names)
            {
                return Enumerable.Range(0, (int)Native.vkf_strings_count(names)).Select(i => Utf8.Read(Native.vkf_strings_get(names, (UIntPtr)i))).ToArray();
            }
        }

        /// <summary>Runs one; `attributes` as a JSON object or null.</summary>
        public static Tensors Run(Device device, string name, Tensors inputs, string attributes, OperatorOptions options, out OperatorCosts costs)
        {
            using (var arena = new Arena())
            {
                vkf_operator_call call = Call(arena, name, inputs, attributes);
                var taken = new vkf_operator_costs { struct_size = (uint)sizeof(vkf_operator_costs) };
                VkfTensorsHandle outputs;
                Library.Check(Native.vkf_operator_run(device.Handle, &call, arena.Put((options ?? new OperatorOptions()).Fill(arena)), out outputs, &taken, Library.Error));
                costs = OperatorCosts.Of(&taken);
                return new Tensors(outputs);
            }
        }

        internal static vkf_operator_call Call(Arena arena, string name, Tensors inputs, string attributes)
        {
            return new vkf_operator_call
            {
                struct_size = (uint)sizeof(vkf_operator_call), name = arena.Text(name), attributes_json = arena.Text(attributes),
                inputs = arena.Hold(inputs.Handle)
            };
        }
    }

    /// <summary>A part of one of the application's storage buffers, for a tensor of that name.</summary>
    public struct BufferRange
    {
        public string Name;
        /// <summary>VkBuffer.</summary>
        public ulong Buffer;
        public ulong Offset;
        public ulong Bytes;

        internal static unsafe vkf_buffer_range* Put(Arena arena, IReadOnlyList<BufferRange> ranges)
        {
            var rows = (vkf_buffer_range*)arena.Room(ranges.Count * sizeof(vkf_buffer_range));
            for (int i = 0; i < ranges.Count; ++i)
            {
                rows[i] = new vkf_buffer_range { name = arena.Text(ranges[i].Name), buffer = ranges[i].Buffer, offset = ranges[i].Offset, bytes = ranges[i].Bytes };
            }
            return rows;
        }
    }

    /// <summary>One operator for fixed shapes, appended to an application's own command buffers.</summary>
    public sealed unsafe class RecordedOperator : NativeObject<VkfRecordedOperatorHandle>
    {
        private readonly Turn turn = new Turn();

        public RecordedOperator(Device device, string name, Tensors inputs, string attributes = null)
        {
            using (var arena = new Arena())
            {
                vkf_operator_call call = Operators.Call(arena, name, inputs, attributes);
                VkfRecordedOperatorHandle made;
                Library.Check(Native.vkf_recorded_operator_create(device.Handle, &call, out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>What can be bound: Vkf.VKF_OPERATOR_INPUTS or Vkf.VKF_OPERATOR_OUTPUTS.</summary>
        public IReadOnlyList<OperatorTensor> Tensors(int side)
        {
            var all = new List<OperatorTensor>();
            for (ulong i = 0; i < (ulong)Native.vkf_recorded_operator_count(Handle, side); ++i)
            {
                var one = new vkf_operator_tensor { struct_size = (uint)sizeof(vkf_operator_tensor) };
                Library.Check(Native.vkf_recorded_operator_get(Handle, side, (UIntPtr)i, &one, Library.Error));
                all.Add(OperatorTensor.Of(&one));
            }
            return all;
        }

        /// <summary>Says where tensors lie. Once, before recording.</summary>
        public void Bind(IReadOnlyList<BufferRange> ranges)
        {
            turn.Take(() =>
            {
                using (var arena = new Arena()) Library.Check(Native.vkf_recorded_operator_bind(Handle, BufferRange.Put(arena, ranges), (UIntPtr)ranges.Count, Library.Error));
                return 0;
            });
        }

        /// <summary>Appends to a VkCommandBuffer that is being recorded, outside of a render pass.</summary>
        public void Record(IntPtr commandBuffer)
        {
            turn.Take(() => { Library.Check(Native.vkf_recorded_operator_record(Handle, (void*)commandBuffer, Library.Error)); return 0; });
        }
    }

    /// <summary>What a device takes for its work.</summary>
    public static unsafe class Measuring
    {
        /// <summary>Times every dispatch from here on, of sessions whose first run of a shape comes after this call.</summary>
        public static void StartProfile(Device device) { Library.Check(Native.vkf_device_start_profile(device.Handle, Library.Error)); }

        /// <summary>What ran since the start, or since the last call.</summary>
        public static IReadOnlyList<DispatchTime> TakeProfile(Device device)
        {
            VkfProfileHandle profile;
            Library.Check(Native.vkf_device_take_profile(device.Handle, out profile, Library.Error));
            using (profile)
            {
                var all = new List<DispatchTime>();
                for (ulong i = 0; i < (ulong)Native.vkf_profile_count(profile); ++i)
                {
                    var one = new vkf_dispatch_time { struct_size = (uint)sizeof(vkf_dispatch_time) };
                    Library.Check(Native.vkf_profile_get(profile, (UIntPtr)i, &one, Library.Error));
                    all.Add(DispatchTime.Of(&one));
                }
                return all;
            }
        }

        public static void StopProfile(Device device) { Library.Check(Native.vkf_device_stop_profile(device.Handle, Library.Error)); }

        /// <summary>What the device does at best. Wants it for itself.</summary>
        public static Roofline Roofline(Device device)
        {
            var roofline = new vkf_roofline { struct_size = (uint)sizeof(vkf_roofline) };
            Library.Check(Native.vkf_device_roofline(device.Handle, &roofline, Library.Error));
            return Vkformer.Roofline.Of(&roofline);
        }

        /// <summary>Finds the fastest kernels, for devices that are then made with Tuning = 1; `file` keeps them.</summary>
        public static IReadOnlyList<TunedChoice> Tune(Device device, TuneOptions options, out string file)
        {
            using (var arena = new Arena())
            {
                VkfTuneReportHandle report;
                Library.Check(Native.vkf_device_tune(device.Handle, arena.Put((options ?? new TuneOptions()).Fill(arena)), out report, Library.Error));
                using (report)
                {
                    var all = new List<TunedChoice>();
                    for (ulong i = 0; i < (ulong)Native.vkf_tune_report_count(report); ++i)
                    {
                        var one = new vkf_tuned_choice { struct_size = (uint)sizeof(vkf_tuned_choice) };
                        Library.Check(Native.vkf_tune_report_get(report, (UIntPtr)i, &one, Library.Error));
                        all.Add(TunedChoice.Of(&one));
                    }
                    file = Utf8.Read(Native.vkf_tune_report_file(report));
                    return all;
                }
            }
        }

        /// <summary>Checks what vkformer computes on a device: a report in JSON, and how many checks failed.</summary>
        public static string Conformance(Device device, ConformanceOptions options, out long failed)
        {
            using (var arena = new Arena())
            {
                UIntPtr count;
                VkfBytesHandle json;
                Library.Check(Native.vkf_conformance_run(device.Handle, arena.Put((options ?? new ConformanceOptions()).Fill(arena)), out json, &count, Library.Error));
                failed = (long)count;
                return Utf8.Take(json);
            }
        }

        /// <summary>A report of Conformance as one HTML page.</summary>
        public static string ConformancePage(string json)
        {
            VkfBytesHandle page;
            Library.Check(Native.vkf_conformance_page(Utf8.Needed(json, "json"), out page, Library.Error));
            return Utf8.Take(page);
        }
    }
}
