// The models of tests/tasks/golden (tools/golden/tasks_golden.py) and what they shall answer.
#pragma once

#include <filesystem>
#include <fstream>

#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/depth.h"
#include "vkformer/detect.h"
#include "vkformer/embed.h"
#include "vkformer/segment.h"
#include "vkformer/speak.h"
#include "vkformer/transcribe.h"

namespace vkformer::testing {

inline std::string task_path(const std::string& name) {
  return std::string(VKFORMER_SOURCE_DIR) + "/tests/tasks/golden/" + name;
}

inline Json task_expected(const std::string& name) {
  return read_json(task_path(name + "/expected.json"));
}

inline std::vector<std::string> strings(const Json& list) {
  return list.get<std::vector<std::string>>();
}

// Loads a task of a golden model on the test's device.
template <class T>
T load_task(const std::string& path, const TaskOptions& options = {}) {
  auto task = T::load(*test_device(), ModelSource::directory(path), options);
  REQUIRE_MESSAGE(task.ok(), task.error().message);
  return std::move(task).value();
}

template <class T>
T load_golden(const std::string& name, int batch = 32) {
  TaskOptions options;
  options.batch = batch;
  return load_task<T>(task_path(name), options);
}

// The value of a call that must succeed.
template <class T>
T value_of(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  return std::move(result).value();
}

// Scores of f32 networks of two layers.
inline doctest::Approx near_score(const Json& expected) {
  return doctest::Approx(expected.get<double>()).epsilon(1e-4);
}

// A copy of a golden model that a test changes.
struct TaskCopy {
  test::TempDir folder;

  explicit TaskCopy(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(task_path(name))) {
      std::filesystem::copy(entry.path(), folder.file(entry.path().filename().string()));
    }
  }
  void change(const std::string& file, const std::string& key, const Json& value) const {
    Json json =
        std::filesystem::exists(folder.file(file)) ? read_json(folder.file(file)) : Json::object();
    json[key] = value;
    folder.write(file, json.dump());
  }
};

}  // namespace vkformer::testing
