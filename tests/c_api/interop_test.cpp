// The application's own device, command buffers, buffers and semaphores through the C interface.
#include <cstring>
#include <limits>
#include <thread>

#include "support/c_handles.h"
#include "support/golden.h"
#include "support/patience.h"
#include "support/test_device.h"
#include "vkformer/vkformer.h"
#include "vulkan/context.h"
#include "vulkan/host_image.h"

namespace vkformer::testing {
namespace {

struct Locks {
  int locked = 0;
  int unlocked = 0;
};

// A device that the C interface adopted, and the locks it took around submits.
struct AdoptedInC {
  HostDevice host{VK_API_VERSION_1_2};
  Locks locks;
  Owned<vkf_error> error{vkf_error_create(), vkf_error_free};
  Owned<vkf_device> device{nullptr, vkf_device_free};

  AdoptedInC() {
    vkf_adopted_device adopted = handles();
    vkf_device_options options{};
    options.struct_size = sizeof(options);
    options.cache_directory = "none";
    vkf_device* made = nullptr;
    const vkf_status status = vkf_device_adopt(&adopted, &options, &made, error.get());
    REQUIRE_MESSAGE(status == VKF_OK, message());
    device.reset(made);
  }

  vkf_adopted_device handles() {
    vkf_adopted_device adopted{};
    adopted.struct_size = sizeof(adopted);
    adopted.queue_family = host.family;
    adopted.api_version = host.version;
    adopted.get_instance_proc_addr =
        reinterpret_cast<vkf_any_function>(host.loader->get_instance_proc_addr());
    adopted.instance = host.instance;
    adopted.physical_device = host.physical;
    adopted.device = host.device;
    adopted.queue = host.queue;
    adopted.enabled_features = &host.enabled;
    adopted.queue_lock = [](void* data) { ++static_cast<Locks*>(data)->locked; };
    adopted.queue_unlock = [](void* data) { ++static_cast<Locks*>(data)->unlocked; };
    adopted.queue_lock_data = &locks;
    return adopted;
  }

  const char* message() const { return vkf_error_message(error.get()); }
};

void set(vkf_tensors* tensors, const std::string& name, const Tensor& tensor) {
  vkf_tensor view{};
  view.struct_size = sizeof(view);
  view.dtype = tensor.dtype == DType::kI64 ? VKF_I64 : VKF_F32;
  REQUIRE((tensor.dtype == DType::kI64 || tensor.dtype == DType::kF32));
  view.shape = tensor.shape.data();
  view.rank = tensor.shape.size();
  view.data = tensor.bytes.data();
  view.bytes = tensor.bytes.size();
  CHECK(vkf_tensors_set(tensors, name.c_str(), &view, nullptr) == VKF_OK);
}

vkf_tensor get(const vkf_tensors* tensors, const char* name) {
  vkf_tensor view{};
  view.struct_size = sizeof(view);
  REQUIRE(vkf_tensors_get(tensors, name, &view, nullptr) == VKF_OK);
  return view;
}

// A session of a golden model, its inputs, and what one pass gives.
struct GuestInC : AdoptedInC {
  Owned<vkf_session> session{nullptr, vkf_session_free};
  Owned<vkf_tensors> inputs{nullptr, vkf_tensors_free};
  Owned<vkf_tensors> expected{nullptr, vkf_tensors_free};

  explicit GuestInC(const char* name) {
    const GoldenCase golden = golden_case(name);
    vkf_model* model = nullptr;
    vkf_session* made = nullptr;
    vkf_tensors* tensors = nullptr;
    const vkf_status loaded =
        vkf_model_load(device.get(), golden.path("model").c_str(), nullptr, &model, error.get());
    REQUIRE_MESSAGE(loaded == VKF_OK, message());
    REQUIRE(vkf_session_create(model, nullptr, &made, error.get()) == VKF_OK);
    session.reset(made);
    vkf_model_free(model);
    REQUIRE(vkf_tensors_create(&tensors, error.get()) == VKF_OK);
    inputs.reset(tensors);
    for (const auto& [key, tensor] : golden.pass_inputs()) {
      set(inputs.get(), key, tensor);
    }
    const vkf_status ran =
        vkf_session_run(session.get(), inputs.get(), nullptr, &tensors, error.get());
    REQUIRE_MESSAGE(ran == VKF_OK, message());
    expected.reset(tensors);
  }
};

vkf_advance empty_advance() {
  vkf_advance advance{};
  advance.struct_size = sizeof(advance);
  return advance;
}

void check_same_ids(const vkf_generation* one, const vkf_generation* other) {
  REQUIRE(vkf_generation_inputs(one) == vkf_generation_inputs(other));
  for (size_t i = 0; i < vkf_generation_inputs(other); ++i) {
    vkf_sequence a{}, b{};
    a.struct_size = b.struct_size = sizeof(a);
    REQUIRE(vkf_generation_get(one, i, 0, &a, nullptr) == VKF_OK);
    REQUIRE(vkf_generation_get(other, i, 0, &b, nullptr) == VKF_OK);
    REQUIRE(a.ids.count == b.ids.count);
    CHECK(std::equal(a.ids.ids, a.ids.ids + a.ids.count, b.ids.ids));
  }
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("C: an adopted device is locked around submits, and its misuse is refused") {
    if (!have_test_device()) return;
    AdoptedInC c;
    vkf_device* none = nullptr;
    vkf_adopted_device adopted = c.handles();
    adopted.queue_unlock = nullptr;
    CHECK(vkf_device_adopt(&adopted, nullptr, &none, c.error.get()) == VKF_INVALID_ARGUMENT);
    CHECK(std::strstr(c.message(), "queue_unlock") != nullptr);
    adopted = c.handles();
    adopted.queue_family = 1000;
    CHECK(vkf_device_adopt(&adopted, nullptr, &none, c.error.get()) == VKF_INVALID_ARGUMENT);
    adopted = c.handles();
    adopted.enabled_extension_count = 1;
    CHECK(vkf_device_adopt(&adopted, nullptr, &none, c.error.get()) == VKF_INVALID_ARGUMENT);
    CHECK(none == nullptr);
    CHECK(c.locks.locked == c.locks.unlocked);
  }

  TEST_CASE("C: an operator runs inside the application's command buffer, on its buffers") {
    if (!have_test_device()) return;
    AdoptedInC c;
    HostQueue queue(c.host);
    const std::vector<float> values = {1, 2, 3, 4, 5, 7};
    vkf_tensors* inputs = nullptr;
    vkf_tensors* outputs = nullptr;
    REQUIRE(vkf_tensors_create(&inputs, nullptr) == VKF_OK);
    set(inputs, "X", Tensor::from_floats({2, 3}, values));
    vkf_operator_call call{};
    call.struct_size = sizeof(call);
    call.name = "softmax";
    call.inputs = inputs;
    REQUIRE(vkf_operator_run(c.device.get(), &call, nullptr, &outputs, nullptr, nullptr) == VKF_OK);
    CHECK(c.locks.locked > 0);
    CHECK(c.locks.locked == c.locks.unlocked);
    vkf_recorded_operator* recorded = nullptr;
    REQUIRE(vkf_recorded_operator_create(c.device.get(), &call, &recorded, c.error.get()) ==
            VKF_OK);
    vkf_operator_tensor in{};
    vkf_operator_tensor out{};
    in.struct_size = out.struct_size = sizeof(in);
    REQUIRE(vkf_recorded_operator_get(recorded, VKF_OPERATOR_INPUTS, 0, &in, nullptr) == VKF_OK);
    REQUIRE(vkf_recorded_operator_get(recorded, VKF_OPERATOR_OUTPUTS, 0, &out, nullptr) == VKF_OK);
    float* y = nullptr;
    const VkBuffer buffer = queue.make_buffer(out.bytes, y);
    const vkf_buffer_range range{out.name, handle_bits(buffer), 0, out.bytes};
    const vkf_status bound = vkf_recorded_operator_bind(recorded, &range, 1, c.error.get());
    REQUIRE_MESSAGE(bound == VKF_OK, c.message());
    REQUIRE(vkf_recorded_operator_record(recorded, queue.commands(), c.error.get()) == VKF_OK);
    queue.barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                  VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    queue.submit_and_wait();
    const vkf_tensor wanted = get(outputs, out.name);
    CHECK(std::memcmp(y, wanted.data, wanted.bytes) == 0);
    vkf_recorded_operator_free(recorded);
    vkf_tensors_free(outputs);
    vkf_tensors_free(inputs);
  }
}

TEST_SUITE("model") {
  TEST_CASE("C: a pass runs inside the application's command buffers, into its buffer") {
    if (!have_test_device()) return;
    GuestInC c("bert-base");
    const vkf_tensor hidden = get(c.expected.get(), "last_hidden_state");
    HostQueue queue(c.host);
    float* words = nullptr;
    const VkBuffer buffer = queue.make_buffer(hidden.bytes, words);
    const vkf_buffer_range range{"last_hidden_state", handle_bits(buffer), 0, hidden.bytes};
    const vkf_status started = vkf_session_start_on_buffers(c.session.get(), c.inputs.get(), &range,
                                                            1, nullptr, c.error.get());
    REQUIRE_MESSAGE(started == VKF_OK, c.message());
    vkf_advance advance = empty_advance();
    const double whole = std::numeric_limits<double>::infinity();
    const vkf_status recorded =
        vkf_session_record(c.session.get(), queue.commands(), whole, &advance, c.error.get());
    REQUIRE_MESSAGE(recorded == VKF_OK, c.message());
    CHECK(advance.progress != VKF_RUNNING);
    queue.submit_and_wait();
    CHECK(std::memcmp(words, hidden.data, hidden.bytes) == 0);
    vkf_tensors* rest = nullptr;
    CHECK(vkf_session_finish(c.session.get(), &rest, c.error.get()) == VKF_OK);
    vkf_tensors_free(rest);
  }

  TEST_CASE("C: an image of the application gives the bits of its picture on the host") {
    if (!have_test_device()) return;
    GuestInC c("vit-base");
    std::vector<uint32_t> pixels(45 * 37);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint32_t>(i * 2654435761u);
    HostImage image(c.host, 45, 37, pixels, {VK_FORMAT_B8G8R8A8_UNORM});
    vkf_picture_settings settings{};
    settings.struct_size = sizeof(settings);
    settings.width = settings.height = 32;
    vkf_picture_processor* processor = nullptr;
    REQUIRE(vkf_picture_processor_create(&settings, &processor, c.error.get()) == VKF_OK);
    vkf_pixels view{};
    view.struct_size = sizeof(view);
    view.format = VKF_BGRA8;
    view.bytes = pixels.data();
    view.byte_count = 4 * pixels.size();
    view.width = 45;
    view.height = 37;
    vkf_picture* picture = nullptr;
    vkf_tensors* values = nullptr;
    vkf_tensors* expected = nullptr;
    REQUIRE(vkf_picture_from_pixels(&view, &picture, c.error.get()) == VKF_OK);
    REQUIRE(vkf_picture_processor_run(processor, &picture, 1, &values, c.error.get()) == VKF_OK);
    REQUIRE(vkf_session_run(c.session.get(), values, nullptr, &expected, c.error.get()) == VKF_OK);

    const ImageInput input = image.input();
    const vkf_image_input in{handle_bits(input.image),
                             static_cast<uint32_t>(input.format),
                             static_cast<uint32_t>(input.layout),
                             45,
                             37,
                             0,
                             0};
    vkf_image_inputs inputs{};
    inputs.struct_size = sizeof(inputs);
    inputs.images = &in;
    inputs.count = 1;
    const auto start = [&] {
      return vkf_session_start_on_images(c.session.get(), nullptr, &inputs, nullptr, c.error.get());
    };
    CHECK(start() == VKF_INVALID_ARGUMENT);  // no processor
    inputs.processor = processor;
    REQUIRE_MESSAGE(start() == VKF_OK, c.message());
    vkf_tensors* found = nullptr;
    vkf_advance advance = empty_advance();
    vkf_slice_options slice{};
    slice.struct_size = sizeof(slice);
    slice.microseconds = std::numeric_limits<double>::infinity();
    do {
      const auto status = vkf_session_advance(c.session.get(), &slice, &advance, c.error.get());
      REQUIRE_MESSAGE(status == VKF_OK, c.message());
    } while (advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING);
    REQUIRE(vkf_session_finish(c.session.get(), &found, c.error.get()) == VKF_OK);
    const vkf_tensor a = get(expected, "last_hidden_state"), b = get(found, "last_hidden_state");
    REQUIRE(a.bytes == b.bytes);
    CHECK(std::memcmp(a.data, b.data, a.bytes) == 0);
    for (vkf_tensors* tensors : {values, expected, found}) vkf_tensors_free(tensors);
    vkf_picture_free(picture);
    vkf_picture_processor_free(processor);
  }

  TEST_CASE("C: a device keeps the budget that it is given, and takes the host's pipeline cache") {
    if (!have_test_device()) return;
    AdoptedInC c;
    vkf_adopted_device adopted = c.handles();
    HostQueue queue(c.host);
    VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    REQUIRE(queue.api().CreatePipelineCache(c.host.device, &info, nullptr, &cache) == VK_SUCCESS);
    adopted.pipeline_cache = handle_bits(cache);
    vkf_device_options options{};
    options.struct_size = sizeof(options);
    options.memory_budget = 4 << 20;
    vkf_device* device = nullptr;
    REQUIRE(vkf_device_adopt(&adopted, &options, &device, c.error.get()) == VKF_OK);
    vkf_model* model = nullptr;
    const std::string path = golden_case("bert-base").path("model");
    CHECK(vkf_model_load(device, path.c_str(), nullptr, &model, c.error.get()) == VKF_OK);
    CHECK(vkf_device_memory_in_use(device) > 0);
    CHECK(vkf_device_memory_allocated(device) <= options.memory_budget);
    vkf_model_free(model);
    vkf_device_free(device);
    queue.api().DestroyPipelineCache(c.host.device, cache, nullptr);
    options.queue_priority = 2;
    CHECK(vkf_device_adopt(&adopted, &options, &device, c.error.get()) == VKF_INVALID_ARGUMENT);
    CHECK(std::string(c.message()).find("queue_priority") != std::string::npos);
  }

  TEST_CASE("C: a submit waits for the application's semaphores and signals its own") {
    if (!have_test_device()) return;
    GuestInC c("bert-base");
    if (c.host.enabled12.timelineSemaphore == VK_FALSE) {
      MESSAGE("skipped: the device has no timeline semaphores");
      return;
    }
    HostQueue queue(c.host);
    const VkSemaphore binary = queue.make_semaphore(HostQueue::SemaphoreKind::kBinary);
    const VkSemaphore timeline = queue.make_semaphore(HostQueue::SemaphoreKind::kTimeline);
    const vkf_semaphore_use wait{handle_bits(binary), 0};
    const vkf_semaphore_use signal{handle_bits(timeline), 7};
    vkf_slice_options slice{};
    slice.struct_size = sizeof(slice);
    slice.microseconds = std::numeric_limits<double>::infinity();
    slice.wait_count = slice.signal_count = 1;
    vkf_advance advance = empty_advance();
    REQUIRE(vkf_session_start(c.session.get(), c.inputs.get(), nullptr, c.error.get()) == VKF_OK);
    CHECK(vkf_session_advance(c.session.get(), &slice, &advance, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    slice.wait = &wait;
    slice.signal = &signal;
    queue.submit_signalling(binary);
    const vkf_status submitted =
        vkf_session_advance(c.session.get(), &slice, &advance, c.error.get());
    REQUIRE_MESSAGE(submitted == VKF_OK, c.message());
    queue.wait_for(timeline, 7);
    vkf_tensors* outputs = nullptr;
    REQUIRE(vkf_session_finish(c.session.get(), &outputs, c.error.get()) == VKF_OK);
    const vkf_tensor hidden = get(c.expected.get(), "last_hidden_state");
    CHECK(std::memcmp(get(outputs, "last_hidden_state").data, hidden.data, hidden.bytes) == 0);
    vkf_tensors_free(outputs);
  }

  TEST_CASE("C: what is worth enabling, and a generation in slices") {
    if (!have_test_device()) return;
    AdoptedInC app;
    vkf_adopted_device handles = app.handles();
    const char* own[] = {"VK_KHR_own_extension"};
    handles.enabled_extensions = own;
    handles.enabled_extension_count = 1;
    vkf_feature_chain* chain = nullptr;
    REQUIRE_MESSAGE(vkf_feature_chain_create(&handles, nullptr, &chain, app.error.get()) == VKF_OK,
                    app.message());
    const Owned<vkf_feature_chain> chain_owner(chain, vkf_feature_chain_free);
    REQUIRE(handles.enabled_extension_count > 0);
    CHECK(handles.enabled_extensions[0] == std::string("VK_KHR_own_extension"));
    const auto* features = static_cast<const VkPhysicalDeviceFeatures2*>(handles.enabled_features);
    REQUIRE(features != nullptr);
    CHECK(features->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
    CHECK(vkf_feature_chain_create(nullptr, nullptr, &chain, app.error.get()) != VKF_OK);
    CHECK(vkf_feature_chain_queue_family(nullptr) == 0);
    CHECK(vkf_feature_chain_low_priority(nullptr) == nullptr);

    const GoldenCase golden = golden_case("gpt2-batch");
    vkf_model* model = nullptr;
    REQUIRE_MESSAGE(vkf_model_load(app.device.get(), golden.path("model").c_str(), nullptr, &model,
                                   app.error.get()) == VKF_OK,
                    app.message());
    const Owned<vkf_model> model_owner(model, vkf_model_free);
    vkf_session* session = nullptr;
    REQUIRE(vkf_session_create(model, nullptr, &session, app.error.get()) == VKF_OK);
    const Owned<vkf_session> session_owner(session, vkf_session_free);
    vkf_tensors* made = nullptr;
    REQUIRE(vkf_tensors_create(&made, app.error.get()) == VKF_OK);
    const Owned<vkf_tensors> inputs(made, vkf_tensors_free);
    for (const auto& [name, tensor] : golden.pass_inputs()) {
      set(inputs.get(), name, tensor);
    }
    vkf_generate_options options{};
    options.struct_size = sizeof(options);
    options.set = VKF_SET_BEAMS | VKF_SET_MAX_NEW_TOKENS;
    options.beams = 1;
    options.max_new_tokens = 5;
    REQUIRE_MESSAGE(
        vkf_session_start_generation(session, inputs.get(), &options, app.error.get()) == VKF_OK,
        app.message());
    vkf_tensors* outputs = nullptr;
    CHECK(vkf_session_finish(session, &outputs, app.error.get()) != VKF_OK);
    vkf_slice_options slice{};
    slice.struct_size = sizeof(slice);
    slice.microseconds = 400;
    vkf_advance advance{};
    advance.struct_size = sizeof(advance);
    for (const Patience patience; patience.left() && advance.progress != VKF_DONE;) {
      REQUIRE(vkf_session_advance(session, &slice, &advance, app.error.get()) == VKF_OK);
      std::this_thread::yield();
    }
    vkf_generation* sliced = nullptr;
    REQUIRE_MESSAGE(vkf_session_finish_generation(session, &sliced, app.error.get()) == VKF_OK,
                    app.message());
    const Owned<vkf_generation> sliced_owner(sliced, vkf_generation_free);
    vkf_generation* whole = nullptr;
    REQUIRE(vkf_session_generate_from(session, inputs.get(), &options, &whole, app.error.get()) ==
            VKF_OK);
    const Owned<vkf_generation> whole_owner(whole, vkf_generation_free);
    check_same_ids(sliced, whole);
    CHECK(vkf_session_forget_buffers(session, app.error.get()) == VKF_OK);
  }
}

}  // namespace vkformer::testing
