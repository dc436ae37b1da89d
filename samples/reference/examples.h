// The examples of the headers' reference, one function for each subject. The text between
// "//! [names]" and "//! [end]" is shown beside the functions that it names.
//
// Threading: one thread. Lifetime: an example keeps nothing; files go to Setting::scratch.
#pragma once

#include <vkformer/device.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

// What the examples work with.
struct Setting {
  vkformer::Device device;
  std::string models;   // the project's folder models/
  std::string goldens;  // small models of many families: tests/golden/
  std::string tasks;    // models with vocabularies, pictures and recordings: tests/tasks/golden/
  std::string scratch;  // an empty folder for files
};

// Success if `holds`, else an error that names what was expected.
vkformer::Status expect(bool holds, const std::string& what);
// The bytes of a file.
std::vector<std::byte> read_file(const std::string& path);
// What `show` gives; prints how long it took, and its error.
vkformer::Status timed(const std::string& name, const std::function<vkformer::Status()>& show);

vkformer::Status show_attention_view(const Setting& setting);
vkformer::Status show_batches(const Setting& setting);
vkformer::Status show_conformance(const Setting& setting);
vkformer::Status show_device(const Setting& setting);
vkformer::Status show_grammars(const Setting& setting);
vkformer::Status show_groups(const Setting& setting);
vkformer::Status show_guest(const Setting& setting);
vkformer::Status show_in_c(const Setting& setting);
vkformer::Status show_measurements(const Setting& setting);
vkformer::Status show_measurements_in_c(const Setting& setting);
vkformer::Status show_model(const Setting& setting);
vkformer::Status show_operators(const Setting& setting);
vkformer::Status show_picture_tasks(const Setting& setting);
vkformer::Status show_pictures(const Setting& setting);
vkformer::Status show_session(const Setting& setting);
vkformer::Status show_slices(const Setting& setting);
vkformer::Status show_sounds(const Setting& setting);
vkformer::Status show_sources(const Setting& setting);
vkformer::Status show_tasks(const Setting& setting);
vkformer::Status show_tensor(const Setting& setting);
vkformer::Status show_tokenizer(const Setting& setting);
vkformer::Status show_values(const Setting& setting);
