// Vulkan devices.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using Vkformer.Interop;

namespace Vkformer
{
    /// <summary>A Vulkan device of vkformer's own, or an adopted one.</summary>
    public sealed unsafe class Device : NativeObject<VkfDeviceHandle>
    {
        public Device(DeviceOptions options = null)
        {
            using (var arena = new Arena())
            {
                vkf_device_options* given = arena.Put((options ?? new DeviceOptions()).Fill(arena));
                VkfDeviceHandle made;
                Library.Check(Native.vkf_device_create(given, out made, Library.Error));
                Handle = made;
            }
        }

        private Device(VkfDeviceHandle handle) : base(handle) { }

        /// <summary>Wraps an application's own device, an engine's for instance. Its objects must outlive all
        /// that is made from it.</summary>
        public static Device Adopt(vkf_adopted_device adopted, DeviceOptions options = null)
        {
            adopted.struct_size = (uint)sizeof(vkf_adopted_device);
            using (var arena = new Arena())
            {
                VkfDeviceHandle made;
                Library.Check(Native.vkf_device_adopt(&adopted, arena.Put((options ?? new DeviceOptions()).Fill(arena)),
                                                      out made, Library.Error));
                return new Device(made);
            }
        }

        /// <summary>Every Vulkan device of this machine.</summary>
        public static IReadOnlyList<DeviceInfo> All()
        {
            VkfDevicesHandle found;
            Library.Check(Native.vkf_devices_list(out found, Library.Error));
            using (found)
            {
                var all = new List<DeviceInfo>();
                for (ulong i = 0; i < (ulong)Native.vkf_devices_count(found); ++i)
                {
                    var info = new vkf_device_info { struct_size = (uint)sizeof(vkf_device_info) };
                    Library.Check(Native.vkf_devices_get(found, (UIntPtr)i, &info, Library.Error));
                    all.Add(DeviceInfo.Of(&info));
                }
                return all;
            }
        }

        public DeviceInfo Info
        {
            get
            {
                var info = new vkf_device_info { struct_size = (uint)sizeof(vkf_device_info) };
                Library.Check(Native.vkf_device_get_info(Handle, &info, Library.Error));
                return DeviceInfo.Of(&info);
            }
        }

        /// <summary>The tier in use: "baseline", "subgroup", "fp16" or "matrix".</summary>
        public string Tier { get { return Utf8.Read(Native.vkf_device_tier(Handle)); } }
        /// <summary>Bytes of device memory held by vkformer's objects.</summary>
        public ulong MemoryInUse { get { return Native.vkf_device_memory_in_use(Handle); } }
        /// <summary>Bytes of device memory allocated for them.</summary>
        public ulong MemoryAllocated { get { return Native.vkf_device_memory_allocated(Handle); } }
    }

    /// <summary>Several devices that hold one model together, 2 to 64 in the order of its layers:
    /// ModelOptions.Group.</summary>
    public sealed unsafe class DeviceGroup : NativeObject<VkfDeviceGroupHandle>
    {
        /// <summary>`shares`: how the work is shared out, a positive number a device; null: by measured speed.
        /// `lanes`: parts of a batch under way at once; 0: as many as devices.</summary>
        public DeviceGroup(IReadOnlyList<Device> devices, double[] shares = null, int lanes = 0)
        {
            if (devices == null) throw new ArgumentNullException("devices");
            if (shares != null && shares.Length != devices.Count) throw new ArgumentException(shares.Length + " shares for " + devices.Count + " devices; give one for each.");
            using (var arena = new Arena())
            fixed (double* numbers = shares)
            {
                VkfDeviceGroupHandle made;
                Library.Check(Native.vkf_device_group_create(arena.Handles(devices.Select(one => one.Handle).ToArray()), (UIntPtr)devices.Count, numbers, lanes, out made, Library.Error));
                Handle = made;
            }
        }

        private DeviceGroup(VkfDeviceGroupHandle made) { Handle = made; }

        /// <summary>Of devices alike, which divide the heads and feed-forward columns of every layer evenly.
        /// `lanes`: parts of a batch under way at once; 0: 1.</summary>
        public static DeviceGroup Divided(IReadOnlyList<Device> devices, int lanes = 0)
        {
            return Make(devices, lanes, Native.vkf_device_group_create_divided);
        }

        /// <summary>Of devices that have the layers or divide each, whatever takes less time a token by an estimate
        /// when a model is loaded. `lanes`: parts of a batch under way at once; 0: as suits.</summary>
        public static DeviceGroup Fastest(IReadOnlyList<Device> devices, int lanes = 0)
        {
            return Make(devices, lanes, Native.vkf_device_group_create_fastest);
        }

        private delegate int Maker(IntPtr* devices, UIntPtr count, int lanes, out VkfDeviceGroupHandle made, VkfErrorHandle error);

        private static DeviceGroup Make(IReadOnlyList<Device> devices, int lanes, Maker maker)
        {
            if (devices == null) throw new ArgumentNullException("devices");
            using (var arena = new Arena())
            {
                VkfDeviceGroupHandle made;
                Library.Check(maker(arena.Handles(devices.Select(one => one.Handle).ToArray()), (UIntPtr)devices.Count, lanes, out made, Library.Error));
                return new DeviceGroup(made);
            }
        }
    }

    /// <summary>What is worth enabling before an application makes its VkDevice; keep it until the device was made and
    /// adopted. `host` gets the features and extensions to enable.</summary>
    public sealed unsafe class FeatureChain : NativeObject<VkfFeatureChainHandle>
    {
        public FeatureChain(ref vkf_adopted_device host, IntPtr own = default(IntPtr))
        {
            host.struct_size = (uint)sizeof(vkf_adopted_device);
            fixed (vkf_adopted_device* at = &host)
            {
                VkfFeatureChainHandle made;
                Library.Check(Native.vkf_feature_chain_create(at, (void*)own, out made, Library.Error));
                Handle = made;
            }
        }

        /// <summary>A queue family for a queue of vkformer's own.</summary>
        public uint QueueFamily { get { return Native.vkf_feature_chain_queue_family(Handle); } }
        /// <summary>The extension with which that queue can be made of low priority, or null.</summary>
        public string LowPriority { get { return Utf8.Read(Native.vkf_feature_chain_low_priority(Handle)); } }
    }
}
