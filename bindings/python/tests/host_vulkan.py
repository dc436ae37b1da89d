"""An application with its own Vulkan device, as small as one can be: ctypes over the loader."""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_uint32, c_uint64, c_void_p


def struct(name, *fields):
    return type(name, (Structure,), {"_fields_": list(fields)})


HEAD = [("sType", c_uint32), ("pNext", c_void_p)]
ApplicationInfo = struct("ApplicationInfo", *HEAD, ("name", c_char_p), ("version", c_uint32), ("engine", c_char_p),
                         ("engineVersion", c_uint32), ("apiVersion", c_uint32))
InstanceInfo = struct("InstanceInfo", *HEAD, ("flags", c_uint32), ("application", POINTER(ApplicationInfo)),
                      ("layerCount", c_uint32), ("layers", c_void_p), ("extensionCount", c_uint32), ("extensions", c_void_p))
QueueInfo = struct("QueueInfo", *HEAD, ("flags", c_uint32), ("family", c_uint32), ("count", c_uint32),
                   ("priorities", POINTER(c_float)))
DeviceInfo = struct("DeviceInfo", *HEAD, ("flags", c_uint32), ("queueCount", c_uint32), ("queues", POINTER(QueueInfo)),
                    ("layerCount", c_uint32), ("layers", c_void_p), ("extensionCount", c_uint32),
                    ("extensions", POINTER(c_char_p)), ("features", c_void_p))
BufferInfo = struct("BufferInfo", *HEAD, ("flags", c_uint32), ("size", c_uint64), ("usage", c_uint32),
                    ("sharing", c_uint32), ("familyCount", c_uint32), ("families", c_void_p))
ImageInfo = struct("ImageInfo", *HEAD, ("flags", c_uint32), ("type", c_uint32), ("format", c_uint32),
                   ("width", c_uint32), ("height", c_uint32), ("depth", c_uint32), ("levels", c_uint32),
                   ("layers", c_uint32), ("samples", c_uint32), ("tiling", c_uint32), ("usage", c_uint32),
                   ("sharing", c_uint32), ("familyCount", c_uint32), ("families", c_void_p), ("layout", c_uint32))
Subresource = struct("Subresource", ("aspect", c_uint32), ("level", c_uint32), ("layer", c_uint32))
Layout = struct("Layout", ("offset", c_uint64), ("size", c_uint64), ("rowPitch", c_uint64), ("arrayPitch", c_uint64),
                ("depthPitch", c_uint64))
Needs = struct("Needs", ("size", c_uint64), ("alignment", c_uint64), ("types", c_uint32))
MemoryInfo = struct("MemoryInfo", *HEAD, ("size", c_uint64), ("type", c_uint32))
MemoryType = struct("MemoryType", ("flags", c_uint32), ("heap", c_uint32))
MemoryHeap = struct("MemoryHeap", ("size", c_uint64), ("flags", c_uint32))
MemoryProperties = struct("MemoryProperties", ("typeCount", c_uint32), ("types", MemoryType * 32),
                          ("heapCount", c_uint32), ("heaps", MemoryHeap * 16))
PoolInfo = struct("PoolInfo", *HEAD, ("flags", c_uint32), ("family", c_uint32))
CommandsInfo = struct("CommandsInfo", *HEAD, ("pool", c_uint64), ("level", c_uint32), ("count", c_uint32))
BeginInfo = struct("BeginInfo", *HEAD, ("flags", c_uint32), ("inheritance", c_void_p))
SubmitInfo = struct("SubmitInfo", *HEAD, ("waitCount", c_uint32), ("waits", c_void_p), ("stages", c_void_p),
                    ("count", c_uint32), ("commands", POINTER(c_void_p)), ("signalCount", c_uint32), ("signals", c_void_p))
ImageBarrier = struct("ImageBarrier", *HEAD, ("srcAccess", c_uint32), ("dstAccess", c_uint32), ("oldLayout", c_uint32),
                      ("newLayout", c_uint32), ("srcFamily", c_uint32), ("dstFamily", c_uint32), ("image", c_uint64),
                      ("aspect", c_uint32), ("level", c_uint32), ("levels", c_uint32), ("layer", c_uint32),
                      ("layers", c_uint32))
SemaphoreInfo = struct("SemaphoreInfo", *HEAD, ("flags", c_uint32))
API_1_1 = (1 << 22) | (1 << 12)
PRESENT_READ = 5  # VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL


class Host:
    """An instance, the physical device of a name, and then a device with one queue."""

    def __init__(self, name):
        self.vk = ctypes.CDLL("libvulkan.so.1")
        self.vk.vkGetInstanceProcAddr.restype = c_void_p
        self.keep = []
        application = ApplicationInfo(0, None, b"test", 1, None, 0, API_1_1)
        self.instance = c_void_p()
        self.call("vkCreateInstance", byref(InstanceInfo(1, None, 0, ctypes.pointer(application))), None, byref(self.instance))
        count = c_uint32()
        self.call("vkEnumeratePhysicalDevices", self.instance, byref(count), None)
        found = (c_void_p * count.value)()
        self.call("vkEnumeratePhysicalDevices", self.instance, byref(count), found)
        properties = ctypes.create_string_buffer(2048)  # VkPhysicalDeviceProperties; the name is at 20
        for candidate in found:
            self.vk.vkGetPhysicalDeviceProperties(c_void_p(candidate), properties)
            if properties.raw[20:276].split(b"\0")[0].decode() == name:
                self.physical = c_void_p(candidate)
        self.device = self.queue = None

    def call(self, name, *arguments):
        result = getattr(self.vk, name)(*arguments)
        assert result == 0, f"{name}: {result}"

    @property
    def get_instance_proc_addr(self):
        return ctypes.cast(self.vk.vkGetInstanceProcAddr, c_void_p).value

    def create_device(self, family, features, extensions):
        self.family = family
        priorities = (c_float * 1)(1.0)
        queue = QueueInfo(2, None, 0, family, 1, priorities)
        names = (c_char_p * max(len(extensions), 1))(*(e.encode() for e in extensions))
        info = DeviceInfo(3, features, 0, 1, ctypes.pointer(queue), 0, None, len(extensions), names, None)
        self.device, self.queue = c_void_p(), c_void_p()
        self.call("vkCreateDevice", self.physical, byref(info), None, byref(self.device))
        self.vk.vkGetDeviceQueue(self.device, family, 0, byref(self.queue))
        self.pool, self.commands = c_uint64(), c_void_p()
        self.call("vkCreateCommandPool", self.device, byref(PoolInfo(39, None, 2, family)), None, byref(self.pool))
        self.call("vkAllocateCommandBuffers", self.device, byref(CommandsInfo(40, None, self.pool, 0, 1)), byref(self.commands))

    def memory(self, needs):
        """Memory that this side can write to, and where it is mapped."""
        properties = MemoryProperties()
        self.vk.vkGetPhysicalDeviceMemoryProperties(self.physical, byref(properties))
        kind = next(i for i in range(properties.typeCount)
                    if needs.types >> i & 1 and properties.types[i].flags & 6 == 6)
        memory, mapped = c_uint64(), c_void_p()
        self.call("vkAllocateMemory", self.device, byref(MemoryInfo(5, None, needs.size, kind)), None, byref(memory))
        self.call("vkMapMemory", self.device, memory, c_uint64(0), c_uint64(needs.size), 0, byref(mapped))
        self.keep.append(("vkFreeMemory", memory))
        return memory, mapped.value

    def buffer(self, size):
        """A storage buffer, and its bytes as this side sees them."""
        made, needs = c_uint64(), Needs()
        self.call("vkCreateBuffer", self.device, byref(BufferInfo(12, None, 0, size, 0x23)), None, byref(made))
        self.vk.vkGetBufferMemoryRequirements(self.device, made, byref(needs))
        memory, mapped = self.memory(needs)
        self.call("vkBindBufferMemory", self.device, made, memory, c_uint64(0))
        self.keep.append(("vkDestroyBuffer", made))
        return made.value, (ctypes.c_char * size).from_address(mapped)

    def image(self, rgb):
        """An image of (height, width, 3) bytes in the layout PRESENT_READ."""
        height, width = rgb.shape[:2]
        info = ImageInfo(14, None, 0, 1, 37, width, height, 1, 1, 1, 1, 1, 1 | 4, 0, 0, None, 8)
        made, needs, layout = c_uint64(), Needs(), Layout()
        self.call("vkCreateImage", self.device, byref(info), None, byref(made))
        self.vk.vkGetImageMemoryRequirements(self.device, made, byref(needs))
        memory, mapped = self.memory(needs)
        self.call("vkBindImageMemory", self.device, made, memory, c_uint64(0))
        self.vk.vkGetImageSubresourceLayout(self.device, made, byref(Subresource(1, 0, 0)), byref(layout))
        for y, row in enumerate(rgb):
            texels = b"".join(bytes(pixel) + b"\xff" for pixel in row)
            ctypes.memmove(mapped + layout.offset + y * layout.rowPitch, texels, len(texels))
        barrier = ImageBarrier(45, None, 0x4000, 0x20, 8, PRESENT_READ, 0xFFFFFFFF, 0xFFFFFFFF, made, 1, 0, 1, 0, 1)
        self.begin()
        self.vk.vkCmdPipelineBarrier(self.commands, 0x4000, 0x800, 0, 0, None, 0, None, 1, byref(barrier))
        self.submit()
        self.keep.append(("vkDestroyImage", made))
        return made.value

    def semaphore(self):
        made = c_uint64()
        self.call("vkCreateSemaphore", self.device, byref(SemaphoreInfo(9)), None, byref(made))
        self.keep.append(("vkDestroySemaphore", made))
        return made.value

    def begin(self):
        self.call("vkBeginCommandBuffer", self.commands, byref(BeginInfo(42, None, 1)))

    def drop(self):
        """Ends the command buffer and never submits it."""
        self.call("vkEndCommandBuffer", self.commands)

    def submit(self):
        self.call("vkEndCommandBuffer", self.commands)
        commands = (c_void_p * 1)(self.commands.value)
        self.call("vkQueueSubmit", self.queue, 1, byref(SubmitInfo(4, None, 0, None, None, 1, commands)), c_uint64(0))
        self.call("vkQueueWaitIdle", self.queue)

    def close(self):
        self.call("vkDeviceWaitIdle", self.device)
        for name, thing in reversed(self.keep):
            getattr(self.vk, name)(self.device, thing, None)
        self.vk.vkDestroyCommandPool(self.device, self.pool, None)
        self.vk.vkDestroyDevice(self.device, None)
        self.vk.vkDestroyInstance(self.instance, None)


